"""The cases, one module per family. Each has `build(root)`, which writes its cases and says what must not be mistaken."""
