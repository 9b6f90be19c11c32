//! `-w`: the results as HTML tables.

use super::options::Options;
use super::results::Results;
use super::times::round_ms;

/// A table being written, with the user's attributes.
struct Table<'a> {
    out: String,
    row: &'a str,
    cell: &'a str,
}

impl Table<'_> {
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        let Table { out, row, cell } = self;
        putln!(
            out,
            "<tr {row}><th colspan=2 {cell}>{name}:</th><td colspan=2 {cell}>{value}</td></tr>"
        );
    }

    /// Renders a further value under the previous line.
    fn more(&mut self, value: &str) {
        let Table { out, row, cell } = self;
        putln!(
            out,
            "<tr {row}><td colspan=2 {cell}>&nbsp;</td><td colspan=2 {cell}>{value}</td></tr>"
        );
    }

    fn times(&mut self, name: &str, values: [i64; 3]) {
        let Table { out, row, cell } = self;
        put!(out, "<tr {row}><th {cell}>{name}:</th>");
        for value in values {
            put!(out, "<td {cell}>{value:>5}</td>");
        }
        out.push_str("</tr>\n");
    }
}

pub(super) fn results(options: &Options, results: &Results<'_>) -> String {
    let out = format!("\n\n<table {}>\n", options.table);
    let mut table = Table { out, row: &options.row, cell: &options.cell };
    add_summary(&mut table, options, results);
    requests(&mut table, options, results);
    if results.done() > 0 {
        connection_times(&mut table, results);
    }
    table.out.push_str("</table>\n");
    table.out
}

fn add_summary(table: &mut Table<'_>, options: &Options, results: &Results<'_>) {
    table.line("Server Software", &results.tally.server);
    table.line("Server Hostname", &options.address.host);
    table.line("Server Port", options.address.port);
    table.line("Document Path", &options.address.path);
    match options.any_length {
        true => table.line("Document Length", "Variable"),
        false => {
            let length = results.tally.length.unwrap_or(0);
            table.line("Document Length", format!("{length} bytes"));
        }
    }
    table.line("Concurrency Level", options.concurrency);
    table.line("Time taken for tests", format!("{:.3} seconds", results.seconds));
}

fn requests(table: &mut Table<'_>, options: &Options, results: &Results<'_>) {
    let tally = results.tally;
    table.line("Complete requests", results.done());
    table.line("Failed requests", tally.failures());
    if tally.failures() > 0 {
        let Table { out, row, cell } = table;
        putln!(
            out,
            "<tr {row}><td colspan=4 {cell} >   (Connect: {}, Length: {}, Exceptions: 0)</td></tr>",
            tally.connect_failures,
            tally.length_failures
        );
    }
    if tally.not_2xx > 0 {
        table.line("Non-2xx responses", tally.not_2xx);
    }
    if options.keep_alive {
        table.line("Keep-Alive requests", tally.kept_alive);
    }
    table.line("Total transferred", format!("{} bytes", tally.read));
    if options.body.is_some() {
        table.line("Total body sent", tally.sent);
    }
    table.line("HTML transferred", format!("{} bytes", tally.body_read));
    if results.seconds > 0.0 {
        table.line("Requests per second", format!("{:.2}", results.rate()));
        let received = results.transfer(tally.read);
        table.line("Transfer rate", format!("{received:.2} kb/s received"));
        if options.body.is_some() {
            table.more(&format!("{:.2} kb/s sent", results.transfer(tally.sent)));
            let both = results.transfer(tally.read + tally.sent);
            table.more(&format!("{both:.2} kb/s total"));
        }
    }
}

fn connection_times(table: &mut Table<'_>, results: &Results<'_>) {
    let Table { out, row, cell } = table;
    put!(
        out,
        "<tr {row}><th {cell} colspan=4>Connection Times (ms)</th></tr>\n\
         <tr {row}><th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   \
         <th {cell}>max</th></tr>\n"
    );
    let of = |row: &super::times::TimesRow| [row.min, row.mean, row.max].map(round_ms);
    let (connect, total) = (of(&results.connect), of(&results.total));
    let between = std::array::from_fn(|column| total[column] - connect[column]);
    table.times("Connect", connect);
    table.times("Processing", between);
    table.times("Total", total);
}
