//! gRPC calls: descriptors from the files that the options name, and a first check of the message.

use super::UsageError;
use super::options::GivenOptions;
use grpc::Schema;
use plan::{FileSource, Plan};
use std::path::{Path, PathBuf};

impl GivenOptions {
    /// Compiles `--proto`, and checks message and method where their descriptors are known.
    ///
    /// # Errors
    /// Files that cannot be read or compiled, unknown methods, a message that does not fit.
    pub(super) fn apply_grpc(
        &self,
        plan: &mut Plan,
        files: &dyn FileSource,
    ) -> Result<(), UsageError> {
        if let Some(file) = self.text("proto") {
            let schema = compile(file, self.text("proto-path"), files)
                .map_err(|why| UsageError::new(format!("--proto {file}: {why}")))?;
            plan.grpc.descriptors = Some(schema.to_set());
        }
        if plan.is_grpc() {
            keep_last_content_type(plan);
        }
        let Some(set) = plan.grpc.descriptors.as_ref().filter(|_| plan.is_grpc()) else {
            return Ok(());
        };
        let schema =
            Schema::from_set(set).map_err(|why| UsageError::new(format!("--protoset: {why}")))?;
        for target in &plan.targets {
            let url = &target.url;
            let method = schema
                .method(url.path())
                .map_err(|why| UsageError::new(format!("{url}: {why}")))?;
            let request = method.request(plan.grpc.message.as_deref());
            request.map_err(|why| UsageError::new(format!("--message: {why}")))?;
        }
        Ok(())
    }
}

/// A given content type replaces the default of gRPC calls.
fn keep_last_content_type(plan: &mut Plan) {
    let named = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
    let headers = &mut plan.request.headers;
    let mut more = headers.iter().filter(|field| named(field)).count().saturating_sub(1);
    headers.retain(|field| {
        let dropped = named(field) && more > 0;
        more -= usize::from(dropped);
        !dropped
    });
}

/// Compiles a `.proto` file; imports are searched in `folders`, or next to the file and in this
/// folder.
fn compile(file: &str, folders: Option<&str>, files: &dyn FileSource) -> Result<Schema, String> {
    let read = |path: &Path| files.read(&path.to_string_lossy());
    let path = Path::new(file);
    let beside = path.parent().unwrap_or(Path::new("")).to_owned();
    let folders: Vec<PathBuf> = match folders {
        Some(list) => list.split(',').map(|folder| PathBuf::from(folder.trim())).collect(),
        None => vec![beside, PathBuf::new()],
    };
    let find = |name: &str| {
        let texts = folders.iter().map(|folder| read(&folder.join(name)));
        texts.flatten().find_map(|bytes| String::from_utf8(bytes).ok())
    };
    // the file may be named from here, or from one of the folders
    let inside = folders.iter().find_map(|folder| {
        let name = path.strip_prefix(folder).ok().filter(|name| name.is_relative())?;
        find(&name.to_string_lossy()).map(|_| name.to_string_lossy().into_owned())
    });
    let name = match inside {
        Some(name) => name,
        None if find(file).is_some() => file.to_owned(),
        None => return Err(read(path).err().unwrap_or_else(|| outside(&folders))),
    };
    Schema::compile(&name, &find).map_err(|why| why.0)
}

fn outside(folders: &[PathBuf]) -> String {
    let list: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    format!("it is in none of the folders of --proto-path ({}); add its folder", list.join(", "))
}
