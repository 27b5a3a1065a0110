// ggml's side of `cargo xtask bench`: the encoder of one bundle as a ggml graph on the CPU, timed on request.
//
//     ggml_vit MODEL.gguf INPUT.npy THREADS [TOKENS.npy]
//
// Reads a line from stdin, runs one pass and answers with its wall and its process CPU time in ms. Weights stay in the file's type.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "gguf.h"

static void fail(const std::string &what) {
    fprintf(stderr, "ggml_vit: %s\n", what.c_str());
    exit(1);
}

struct Model {
    gguf_context *file;
    ggml_context *weights = nullptr;
    int dim, layers, heads, patch, tubelet;
    float eps;
    bool cls;

    explicit Model(const char *path) {
        gguf_init_params params = {/*.no_alloc =*/false, /*.ctx =*/&weights};
        file = gguf_init_from_file(path, params);
        if (!file) fail(std::string("cannot read ") + path);
        dim = count("embed_dim");
        layers = count("n_layer");
        heads = count("n_head");
        patch = count("patch_size");
        tubelet = count("tubelet_size");
        eps = gguf_get_val_f32(file, key("ln_eps"));
        cls = gguf_get_val_bool(file, key("cls_token"));
    }
    int64_t key(const char *name) const {
        int64_t id = gguf_find_key(file, (std::string("jepa.enc.") + name).c_str());
        if (id < 0) fail(std::string("no key jepa.enc.") + name);
        return id;
    }
    int count(const char *name) const { return (int)gguf_get_val_u32(file, key(name)); }
    ggml_tensor *tensor(const std::string &name) const {
        ggml_tensor *t = ggml_get_tensor(weights, ("enc." + name).c_str());
        if (!t) fail("no tensor enc." + name);
        return t;
    }
};

// An .npy file of f32 in C order.
static std::vector<float> read_npy(const char *path, std::vector<int64_t> &shape) {
    std::ifstream in(path, std::ios::binary);
    char magic[10];
    if (!in.read(magic, 10)) fail(std::string("cannot read ") + path);
    size_t len = (unsigned char)magic[8] | ((unsigned char)magic[9] << 8);
    std::string header(len, ' ');
    in.read(header.data(), (std::streamsize)len);
    size_t at = header.find('(') + 1, end = header.find(')');
    int64_t total = 1;
    while (at < end) {
        char *next;
        int64_t size = strtoll(header.c_str() + at, &next, 10);
        shape.push_back(size);
        total *= size;
        at = header.find_first_not_of(", ", (size_t)(next - header.c_str()));
    }
    std::vector<float> values((size_t)total);
    in.read((char *)values.data(), total * 4);
    return values;
}

static void write_npy(const char *path, const float *values, int64_t rows, int64_t dim) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, " + std::to_string(rows) + ", " + std::to_string(dim) + "), }";
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    std::ofstream out(path, std::ios::binary);
    out.write("\x93NUMPY\x01\x00", 8);
    char len[2] = {(char)(header.size() & 255), (char)(header.size() >> 8)};
    out.write(len, 2);
    out << header;
    out.write((const char *)values, rows * dim * 4);
}

// Rows of patches, [tokens][chans · tubelet · patch · patch], from pixels [chans][frames][height][width].
static std::vector<float> patches(const Model &m, const std::vector<float> &pixels, const std::vector<int64_t> &shape) {
    int64_t c = shape[1], frames = shape.size() == 5 ? shape[2] : 1, h = shape[shape.size() - 2], w = shape.back();
    int64_t p = m.patch, t = m.tubelet;
    std::vector<float> out;
    out.reserve(pixels.size());
    for (int64_t ft = 0; ft < frames / t; ft++)
        for (int64_t ph = 0; ph < h / p; ph++)
            for (int64_t pw = 0; pw < w / p; pw++)
                for (int64_t ch = 0; ch < c; ch++)
                    for (int64_t f = 0; f < t; f++)
                        for (int64_t y = 0; y < p; y++) {
                            const float *row = &pixels[(size_t)(((ch * frames + ft * t + f) * h + ph * p + y) * w + pw * p)];
                            out.insert(out.end(), row, row + p);
                        }
    return out;
}

static ggml_tensor *linear(ggml_context *g, const Model &m, const std::string &name, ggml_tensor *x) {
    return ggml_add(g, ggml_mul_mat(g, m.tensor(name + ".weight"), x), m.tensor(name + ".bias"));
}

static ggml_tensor *norm(ggml_context *g, const Model &m, const std::string &name, ggml_tensor *x) {
    return ggml_add(g, ggml_mul(g, ggml_norm(g, x, m.eps), m.tensor(name + ".weight")), m.tensor(name + ".bias"));
}

static ggml_tensor *block(ggml_context *g, const Model &m, int i, ggml_tensor *x) {
    std::string at = "blk." + std::to_string(i) + ".";
    int64_t n = x->ne[1], d = m.dim, width = d / m.heads;
    ggml_tensor *qkv = linear(g, m, at + "attn_qkv", norm(g, m, at + "ln1", x));
    auto part = [&](int which) {
        ggml_tensor *v = ggml_view_3d(g, qkv, width, m.heads, n, (size_t)width * 4, qkv->nb[1], (size_t)(which * d) * 4);
        return ggml_permute(g, v, 0, 2, 1, 3);
    };
    ggml_tensor *k = ggml_cast(g, part(1), GGML_TYPE_F16), *v = ggml_cast(g, part(2), GGML_TYPE_F16);
    ggml_tensor *y = ggml_flash_attn_ext(g, part(0), k, v, nullptr, 1.0f / std::sqrt((float)width), 0.0f, 0.0f);
    x = ggml_add(g, x, linear(g, m, at + "attn_out", ggml_reshape_2d(g, y, d, n)));
    ggml_tensor *h = ggml_gelu_erf(g, linear(g, m, at + "ffn_up", norm(g, m, at + "ln2", x)));
    return ggml_add(g, x, linear(g, m, at + "ffn_down", h));
}

int main(int argc, char **argv) {
    if (argc < 4) fail("MODEL.gguf INPUT.npy THREADS [TOKENS.npy]");
    Model m(argv[1]);
    std::vector<int64_t> shape;
    std::vector<float> rows = patches(m, read_npy(argv[2], shape), shape);
    int64_t values = ggml_nelements(m.tensor("patch_embed.weight")) / m.dim, tokens = (int64_t)rows.size() / values;

    ggml_init_params params = {ggml_tensor_overhead() * 8192 + ggml_graph_overhead_custom(8192, false), nullptr, true};
    ggml_context *g = ggml_init(params);
    ggml_tensor *input = ggml_new_tensor_2d(g, GGML_TYPE_F32, values, tokens);
    ggml_set_input(input);
    ggml_tensor *x = linear(g, m, "patch_embed", input);
    if (m.cls) x = ggml_concat(g, ggml_reshape_2d(g, m.tensor("cls_token"), m.dim, 1), x, 1);
    x = ggml_add(g, x, m.tensor("pos_embed"));
    for (int i = 0; i < m.layers; i++) x = block(g, m, i, x);
    x = norm(g, m, "norm", x);
    ggml_set_output(x);
    ggml_cgraph *graph = ggml_new_graph_custom(g, 8192, false);
    ggml_build_forward_expand(graph, x);

    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, atoi(argv[3]));
    ggml_gallocr_t alloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(cpu));
    if (!ggml_gallocr_alloc_graph(alloc, graph)) fail("no memory for the graph");
    auto pass = [&] {
        memcpy(input->data, rows.data(), rows.size() * 4);
        if (ggml_backend_graph_compute(cpu, graph) != GGML_STATUS_SUCCESS) fail("the graph did not compute");
    };
    if (argc > 4) {
        pass();
        write_npy(argv[4], (const float *)x->data, x->ne[1], x->ne[0]);
    }
    for (std::string line; std::getline(std::cin, line);) {
        auto wall = std::chrono::steady_clock::now();
        timespec a, b;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        pass();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - wall).count();
        printf("%f %f\n", ms, (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6);
        fflush(stdout);
    }
}
