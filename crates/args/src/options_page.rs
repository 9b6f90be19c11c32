//! The guide's page of options, docs/guide/options.md: generated from clap's definition of `run` and
//! the table of options. `cargo xtask bless` writes it again.

use super::Cli;
use clap::{Arg, CommandFactory};
use plan::options::Setting;
use plan::rules::show_span;
use std::path::Path;
use units::Nanos;

const HEAD: &str = "\
# Every option of a run

The options of `run`, and of `ramp`, `compare` and the commands of `fleet`, in the order of
`loadstone run --help`. The key is the option's place in a [plan](plans.md): `connection.calls` is
`calls` in the table `[connection]`. Bounds are those of the value alone. The last column links to
the page that explains the option. The program generates this page (`cargo xtask bless`).
";

/// Page for the output options, which are not in the table.
const OUTPUT_PAGE: &str = "measure-a-server";

/// Renders a table row; `|` ends a cell, so it is escaped.
fn line(cells: [String; 5]) -> String {
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn link(page: &str) -> String {
    format!("[{page}]({page}.md)")
}

fn bounds(row: &Setting) -> String {
    let time = |span: Nanos| {
        let long =
            [("d", 86_400), ("h", 3_600)].map(|(unit, secs)| (unit, Nanos::from_secs(secs).0));
        let whole = long.into_iter().find(|(_, size)| span.0 > 0 && span.0.is_multiple_of(*size));
        whole.map_or_else(|| show_span(span), |(unit, size)| format!("{}{unit}", span.0 / size))
    };
    let amount = |number: f64| match row.value {
        "TIME" => time(Nanos::from_secs_f64(number)),
        _ => number.to_string(),
    };
    // the range of the number type is not a bound
    let known = |number: &f64| number.is_finite() && number.abs() < f64::MAX;
    let least = row.bounds.iter().map(|bound| bound.least).find(known);
    let most = row.bounds.iter().map(|bound| bound.most).find(known);
    match (least, most) {
        (Some(f64::MIN_POSITIVE), None) => "above 0".to_owned(),
        (Some(least), Some(most)) => format!("{} to {}", amount(least), amount(most)),
        (Some(least), None) => format!("from {}", amount(least)),
        (None, Some(most)) => format!("up to {}", amount(most)),
        (None, None) => String::new(),
    }
}

fn key(row: &Setting) -> String {
    match row.key() {
        (_, "") => String::new(),
        ("", key) => format!("`{key}`"),
        (table, key) => format!("`{table}.{key}`"),
    }
}

fn option_line(arg: &Arg, name: &str) -> String {
    let row = plan::options::named(name);
    let short = arg.get_short().map_or(String::new(), |letter| format!("`-{letter}`, "));
    let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
    let value = value.map_or(String::new(), |names| format!(" {}", names[0]));
    line([
        format!("{short}`--{name}{value}`"),
        arg.get_help().map(ToString::to_string).unwrap_or_default(),
        row.map(key).unwrap_or_default(),
        row.map(bounds).unwrap_or_default(),
        link(row.map_or(OUTPUT_PAGE, |row| row.page)),
    ])
}

fn page() -> String {
    let mut command = Cli::command();
    command.build();
    let run = command.find_subcommand("run").expect("run is a command");
    let part_head = |part: &str| {
        format!("\n## {part}\n\n| option | effect | key | bounds | page |\n|---|---|---|---|---|\n")
    };
    // in help order: a section is at its first option
    let mut parts: Vec<(&str, String)> = Vec::new();
    for arg in run.get_arguments().filter(|arg| !arg.is_positional()) {
        let (Some(name), Some(part)) = (arg.get_long(), arg.get_help_heading()) else { continue };
        let line = option_line(arg, name);
        match parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, lines)) => lines.push_str(&line),
            None => parts.push((part, part_head(part) + &line)),
        }
    }
    let mut text = parts.into_iter().fold(HEAD.to_owned(), |text, (_, lines)| text + &lines);
    text.push_str(&part_head("Keys of a plan that have no option"));
    for row in plan::options::all().filter(|row| row.name.is_empty()) {
        text.push_str(&line([
            String::new(),
            row.help.to_owned(),
            key(row),
            bounds(row),
            link(row.page),
        ]));
    }
    text
}

#[test]
fn the_guide_has_every_option() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/options.md");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        std::fs::write(&path, page()).expect("the guide is writable");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "docs/guide/options.md is out of date: cargo xtask bless writes it");
}
