//! A bucket in an object store: Amazon S3 and compatible stores, Azure, Google.
//!
//! Credentials, region and endpoint come from the environment variables that `object_store` and polars read:
//! `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` and so on.

use std::fs;
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use handlescope_model::output::temporary_folder;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayload, parse_url_opts};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::error::DatasetError;

/// A folder in a bucket.
#[derive(Debug, Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    /// Folder within the bucket.
    prefix: Path,
    /// URL of the folder, without a slash at the end.
    root: PathBuf,
}

impl Bucket {
    pub fn at(url: &str) -> Result<Self, DatasetError> {
        let url = url.trim_end_matches('/');
        let failed = |reason: String| DatasetError::Url { url: url.to_owned(), reason };
        let parsed = Url::parse(url).map_err(|error| failed(error.to_string()))?;
        let (store, prefix) =
            parse_url_opts(&parsed, std::env::vars()).map_err(|error| failed(error.to_string()))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            store: store.into(),
            runtime: Arc::new(runtime),
            prefix,
            root: PathBuf::from(url),
        })
    }

    pub fn root(&self) -> &FilePath {
        &self.root
    }

    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.root.display())
    }

    fn object(&self, name: &str) -> Path {
        // `=` in folder names is not escaped.
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |path, part| path.join(part.to_owned()))
    }

    fn failed(&self, name: &str) -> impl FnOnce(Error) -> DatasetError {
        let url = self.url(name);
        move |error| DatasetError::Url { url, reason: error.to_string() }
    }

    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DatasetError> {
        let object = self.object(name);
        let read = self.runtime.block_on(async {
            let content = self.store.get(&object).await?.bytes().await?;
            Ok::<_, Error>(content.to_vec())
        });
        present(read).map_err(self.failed(name))
    }

    pub fn size(&self, name: &str) -> Result<Option<u64>, DatasetError> {
        let object = self.object(name);
        let head = self.runtime.block_on(self.store.head(&object));
        Ok(present(head).map_err(self.failed(name))?.map(|meta| meta.size))
    }

    pub fn names(&self, folder: &str) -> Result<Vec<String>, DatasetError> {
        let object = self.object(folder);
        let listed = self.runtime.block_on(self.store.list_with_delimiter(Some(&object)));
        let listed = listed.map_err(self.failed(folder))?;
        let files = listed.objects.iter().map(|meta| &meta.location);
        let paths = listed.common_prefixes.iter().chain(files);
        let mut names: Vec<String> =
            paths.filter_map(|path| path.filename().map(str::to_owned)).collect();
        names.sort();
        Ok(names)
    }

    pub fn write(&self, name: &str, content: &mut dyn Read) -> Result<(), DatasetError> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(DatasetError::io(self.url(name)))?;
        let object = self.object(name);
        let put = self.runtime.block_on(self.store.put(&object, PutPayload::from(bytes)));
        put.map(drop).map_err(self.failed(name))
    }

    /// Removes an object and everything below it.
    pub fn remove(&self, name: &str) -> Result<(), DatasetError> {
        let object = self.object(name);
        let removed = self.runtime.block_on(async {
            match self.store.delete(&object).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            for meta in self.store.list_with_delimiter(Some(&object)).await?.objects {
                self.store.delete(&meta.location).await?;
            }
            Ok(())
        });
        removed.map_err(self.failed(name))
    }

    /// Copies an object into a temporary folder.
    pub fn fetch(&self, name: &str) -> Result<Option<(TempDir, PathBuf)>, DatasetError> {
        let Some(content) = self.read(name)? else { return Ok(None) };
        let folder = temporary_folder().map_err(DatasetError::io(self.url(name)))?;
        let path = folder.path().join(name.rsplit('/').next().unwrap_or(name));
        fs::write(&path, content).map_err(DatasetError::io(&path))?;
        Ok(Some((folder, path)))
    }
}

/// Turns "not found" into `None`.
fn present<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(Error::NotFound { .. }) => Ok(None),
        result => result.map(Some),
    }
}
