//! Files for packages: shell completions and the manual page.

use super::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

/// Returns the completion script for a shell.
pub fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "loadstone", &mut script);
    script
}

/// Renders loadstone(1): one page with a section per command.
pub fn man_page() -> std::io::Result<Vec<u8>> {
    // The page has no short form: every option is listed.
    let whole = |sub: clap::Command| sub.mut_args(|option| option.hide_short_help(false));
    let mut command = Cli::command().mut_subcommands(whole);
    command.build();
    let man = Man::new(command.clone()).section("1");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let man = Man::new(command.clone());
        let mut section = Vec::new();
        man.render_synopsis_section(&mut section)?;
        man.render_description_section(&mut section)?;
        man.render_options_section(&mut section)?;
        let name = command.get_name().to_uppercase();
        page.extend_from_slice(format!(".SH \"LOADSTONE {name}\"\n").as_bytes());
        page.extend_from_slice(&lowered(&section));
    }
    let mut rest = Vec::new();
    man.render_extra_section(&mut rest)?;
    page.extend_from_slice(&rest);
    Ok(page)
}

/// Sections made sub-sections.
fn lowered(section: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(section).replace(".SH ", ".SS ").into_bytes()
}
