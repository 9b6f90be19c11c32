//! Prints S-Client's figure as `docs/lineage/s-client.md` shows it.

fn main() -> std::io::Result<()> {
    let figure = sim::s_client::figure(&sim::s_client::curves());
    std::io::Write::write_all(&mut std::io::stdout(), figure.as_bytes())
}
