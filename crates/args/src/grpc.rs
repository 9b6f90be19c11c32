//! gRPC calls: descriptors from the files that the options name, and a first check of the message.

use super::UsageError;
use super::options::GivenOptions;
use grpc::Schema;
use import::recorded::Grpcurl;
use plan::{FileSource, GrpcVariant, HttpVersion, Plan};
use std::path::{Path, PathBuf};

impl GivenOptions {
    /// Compiles `--proto`, and checks message and method where their descriptors are known.
    ///
    /// # Errors
    /// Fails for files that cannot be read or compiled, unknown methods, a message that does not
    /// fit.
    pub(super) fn apply_grpc(
        &self,
        plan: &mut Plan,
        files: &dyn FileSource,
    ) -> Result<(), UsageError> {
        let mut compiled = None;
        if let Some(file) = self.text("proto") {
            let schema = compile(file, self.text("proto-path"), files)
                .map_err(|why| UsageError::new(format!("--proto {file}: {why}")))?;
            plan.grpc.descriptors = Some(schema.to_set());
            compiled = Some(schema);
        }
        if plan.is_grpc() {
            keep_last_content_type(plan);
        }
        if plan.has_grpc() && plan.grpc.variant != GrpcVariant::Grpc {
            self.settle_variant(plan);
        }
        self.insert_values(plan, files)?;
        let Some(set) = plan.grpc.descriptors.as_ref().filter(|_| plan.has_grpc()) else {
            return Ok(());
        };
        let schema = match compiled {
            Some(schema) => schema,
            None => Schema::from_set(set)
                .map_err(|why| UsageError::new(format!("--protoset: {why}")))?,
        };
        let rows = plan.grpc_rows();
        for (row, target) in plan.targets.iter().enumerate() {
            if !rows.is_empty() && !rows.contains(&(row as u32)) {
                continue;
            }
            let url = &target.url;
            let method = schema
                .method(url.path())
                .map_err(|why| UsageError::new(format!("{url}: {why}")))?;
            let request = method.request(plan.grpc.message_of(0).as_deref());
            request.map_err(|why| UsageError::new(format!("--message: {why}")))?;
        }
        Ok(())
    }
}

impl GivenOptions {
    /// Inserts values into the message of each call, if it has any.
    fn insert_values(&self, plan: &mut Plan, files: &dyn FileSource) -> Result<(), UsageError> {
        let feeders = self.text("feeder").map(plan::journey::feeder_tables).transpose();
        let feeders = feeders.map_err(|why| UsageError::new(format!("--feeder: {why}")))?;
        if !plan.has_message_template() {
            return match feeders {
                None => Ok(()),
                Some(_) => Err(UsageError::new(
                    "--feeder gives values for the --message of gRPC calls, which inserts none: \
                     write {{name.column}} in it, or drop --feeder",
                )),
            };
        }
        plan.insert_into_message(feeders.unwrap_or_default(), files)
            .map_err(|why| UsageError::new(format!("--message: {why}")))
    }
}

impl GivenOptions {
    /// Settings of gRPC-Web and Connect that follow from the protocol.
    fn settle_variant(&self, plan: &mut Plan) {
        let typed = self.text("grpc-protocol").is_some();
        if typed && self.text("http").is_none() {
            let secure = plan.targets.iter().any(|target| target.url.scheme() == "https");
            plan.request.version = if secure { HttpVersion::Auto } else { HttpVersion::Http11 };
        }
        if plan.grpc.variant != GrpcVariant::Connect {
            return;
        }
        // the calls among the steps of journeys are not judged by HTTP status
        if plan.is_grpc() && plan.expect.status == plan::Expect::default().status {
            // an expected gRPC status may have any HTTP status
            plan.expect.status = vec![(100, 599)];
        }
        let deadline = self.text("grpc-timeout").and_then(|it| units::parse_duration(it).ok());
        if let Some(deadline) = deadline {
            let headers = &mut plan.request.headers;
            headers.retain(|(name, _)| name != "grpc-timeout");
            let text = deadline.0.div_ceil(1_000_000).min(9_999_999_999).to_string();
            headers.push(("connect-timeout-ms".to_owned(), text));
        }
    }
}

/// Returns the plan of a grpcurl command line.
///
/// # Errors
/// Fails for a command that makes no call, files that cannot be read or compiled.
pub fn plan_from_grpcurl(text: &str, files: &dyn FileSource) -> Result<Plan, String> {
    let command = import::recorded::parse_grpcurl(text).map_err(|error| error.0)?;
    let scheme = if command.plaintext { "http" } else { "https" };
    let place = if command.unix { "localhost" } else { &command.address };
    let url = format!("{scheme}://{place}{}", command.path);
    let url = plan::parse_url(&url).map_err(|why| why.0)?.url;
    let mut plan = Plan::for_url(url);
    plan.use_grpc();
    plan.request.headers.extend(command.headers.iter().cloned());
    if let Some(authority) = &command.authority {
        plan.request.headers.push(("host".to_owned(), authority.clone()));
    }
    if let Some(agent) = &command.user_agent {
        plan.request.user_agent.clone_from(agent);
    }
    if command.unix {
        plan.connection.unix = Some(command.address.clone().into());
    }
    if let Some(limit) = command.max_time {
        plan.timeouts.call = limit;
        let deadline = protocol::grpc::timeout(limit);
        plan.request.headers.push(("grpc-timeout".to_owned(), deadline));
    }
    plan.timeouts.connect = command.connect_timeout.unwrap_or(plan.timeouts.connect);
    if !command.plaintext {
        let read = |path: &Option<String>| path.as_ref().map(|path| files.read(path)).transpose();
        plan.tls.ca = read(&command.ca)?;
        plan.tls.cert = read(&command.cert)?;
        plan.tls.key = read(&command.key)?;
        plan.tls.insecure = command.insecure;
        // the authority is the name in the certificate too
        plan.tls.server_name = command.server_name.clone().or(command.authority.clone());
    }
    plan.grpc.descriptors = descriptors_of(&command, files)?;
    plan.grpc.message = match command.data.as_deref() {
        Some("@") => message_of(&String::from_utf8_lossy(&files.read("-")?))?,
        Some(text) => message_of(text)?,
        None => None,
    };
    Ok(plan)
}

/// Reads the descriptors that a command names; `None`: they come from the server's reflection.
fn descriptors_of(command: &Grpcurl, files: &dyn FileSource) -> Result<Option<Vec<u8>>, String> {
    let folders = (!command.import_paths.is_empty()).then(|| command.import_paths.join(","));
    let mut schemas = Vec::new();
    for file in &command.protos {
        let schema = compile(file, folders.as_deref(), files);
        schemas.push(schema.map_err(|why| format!("-proto {file}: {why}"))?);
    }
    for file in &command.protosets {
        let schema = Schema::from_set(&files.read(file)?);
        schemas.push(schema.map_err(|why| format!("-protoset {file}: {why}"))?);
    }
    if schemas.is_empty() {
        return Ok(None);
    }
    let schema = Schema::merged(schemas.iter()).map_err(|why| why.0)?;
    Ok(Some(schema.to_set()))
}

/// Parses consecutive JSON messages; several become a list.
fn message_of(text: &str) -> Result<Option<Vec<u8>>, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    let mut start = 0;
    let mut messages = Vec::new();
    while let Some(value) = values.next() {
        value.map_err(|why| format!("-d is not JSON: {why}"))?;
        messages.push(text[start..values.byte_offset()].trim());
        start = values.byte_offset();
    }
    Ok(match messages.as_slice() {
        [] => None,
        [one] => Some(one.as_bytes().to_vec()),
        several => Some(format!("[{}]", several.join(",")).into_bytes()),
    })
}

/// Keeps only the last content type: a given one replaces the default of gRPC calls.
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
