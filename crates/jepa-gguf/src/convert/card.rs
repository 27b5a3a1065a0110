//! What a checkpoint says about itself: name, licence, origin.

use std::io::Read;
use std::path::Path;

use super::config::Config;
use super::error::ConvertError;
use super::published::PublishedFile;

/// The object of `config.json` that keeps what Hugging Face has no key for; written by our export.
pub(crate) const OWN_OBJECT: &str = "jepa";

/// Where Hugging Face repositories live.
const HUB: &str = "https://huggingface.co/";

/// Longest model card that is searched for a licence, in bytes; the front matter comes first.
const CARD_BYTES: u64 = 64 << 10;

/// `general.name`, `general.license` and `general.source_url`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) name: Option<String>,
    pub(super) license: Option<String>,
    pub(super) source_url: Option<String>,
}

impl Card {
    /// Reads what the folder, the configuration or the published file says. Nothing is guessed from the names of folders.
    pub(super) fn read(
        folder: Option<&Path>,
        config: Option<&Config>,
        published: Option<&PublishedFile>,
    ) -> Result<Self, ConvertError> {
        if let Some(own) = config.map(|c| c.object_opt(OWN_OBJECT)).transpose()?.flatten() {
            let text = |key: &str| Ok::<_, ConvertError>(own.text_opt(key)?.map(str::to_owned));
            return Ok(Self { name: text("name")?, license: text("license")?, source_url: text("source_url")? });
        }
        let mut card = Self::default();
        if let Some(file) = published {
            card = Self {
                name: Some(file.name.to_owned()),
                license: Some(file.license.to_owned()),
                source_url: Some(file.url.to_owned()),
            };
        }
        if let Some(repository) =
            config.map(|c| c.text_opt("_name_or_path")).transpose()?.flatten().filter(|r| is_repository(r))
        {
            card.name = repository.split('/').next_back().map(str::to_owned);
            card.source_url = Some(format!("{HUB}{repository}"));
        }
        if let Some(folder) = folder {
            card.license = license_of(&folder.join("README.md"))?.or(card.license);
        }
        Ok(card)
    }
}

/// `owner/name` and nothing that looks like a path.
fn is_repository(text: &str) -> bool {
    let word = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            && !part.starts_with('.')
    };
    text.split_once('/').is_some_and(|(owner, name)| word(owner) && word(name))
}

/// `license:` of the front matter of a model card; `None` without a card, front matter or licence.
fn license_of(card: &Path) -> Result<Option<String>, ConvertError> {
    if !card.metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    let io = |source| ConvertError::Io { op: "read", path: card.to_owned(), source };
    let mut bytes = Vec::new();
    std::fs::File::open(card).map_err(io)?.take(CARD_BYTES).read_to_end(&mut bytes).map_err(io)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return Ok(None);
    }
    let front = lines.take_while(|line| line.trim_end() != "---");
    let license =
        front.filter_map(|line| line.strip_prefix("license:")).map(|value| value.trim().trim_matches(['"', '\'']));
    Ok(license.filter(|value| !value.is_empty()).map(str::to_owned).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_is_read_off_the_front_matter_only() {
        let folder = tempfile::tempdir().unwrap();
        let card = folder.path().join("README.md");
        assert_eq!(license_of(&card).unwrap(), None);
        std::fs::write(&card, "---\ntags: [x]\nlicense: \"cc-by-nc-4.0\"\n---\nlicense: mit\n").unwrap();
        assert_eq!(license_of(&card).unwrap().as_deref(), Some("cc-by-nc-4.0"));
        std::fs::write(&card, "# Title\nlicense: mit\n").unwrap();
        assert_eq!(license_of(&card).unwrap(), None);
    }

    #[test]
    fn repositories_are_told_from_paths() {
        assert!(is_repository("facebook/ijepa_vith14_1k"));
        for path in ["/home/me/model", "../model", "model", "a/b/c", ""] {
            assert!(!is_repository(path), "{path}");
        }
    }
}
