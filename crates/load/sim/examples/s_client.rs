//! Prints S-Client's figure for `docs/lineage/s-client.md`.

fn main() -> std::io::Result<()> {
    let figure = sim::s_client::figure(&sim::s_client::curves());
    std::io::Write::write_all(&mut std::io::stdout(), figure.as_bytes())
}
