//! Writes the schemas into a folder: `cargo xtask schema` runs it with `docs/schema`.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    for schema in record::schema::published() {
        std::fs::write(folder.join(&schema.file), &schema.text)?;
    }
    Ok(())
}
