//! Feeders of a plan file: CSV, JSON lines, or generated.

use crate::FileSource;
use crate::check::node::{Node, Table, pick};
use crate::check::read::Reader;
use crate::journey::feeder::{COLUMNS_MAX, FEEDERS_MAX};
use crate::journey::{
    ColumnLaw, Feeder, FeederFormat, FeederOrder, FeederRows, FeederTable, UsedUp,
};
use crate::secrets::MASK;
use std::sync::Arc;
use units::{ParseError, quoted};

const FORMATS: [(&str, FeederFormat); 2] =
    [("csv", FeederFormat::Csv), ("jsonl", FeederFormat::JsonLines)];
const ORDERS: [(&str, FeederOrder); 3] = [
    ("sequential", FeederOrder::Sequential),
    ("random", FeederOrder::Random),
    ("unique", FeederOrder::Unique),
];
const ENDS: [(&str, UsedUp); 2] = [("stop", UsedUp::Stop), ("wrap", UsedUp::Wrap)];

/// Maximum number of cells of one feeder, rows times columns.
const CELLS_MAX: usize = 100_000_000;
/// Maximum length of one random text.
const DRAWN_MAX: usize = 10_000;

pub(super) fn read(
    node: Option<Node<'_>>,
    reader: &Reader<'_>,
    files: &dyn FileSource,
) -> Result<Vec<Feeder>, ParseError> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let tables = node.tables()?;
    if tables.len() > FEEDERS_MAX {
        return Err(node.fault(format!("a plan has {FEEDERS_MAX} feeders at most")));
    }
    let mut all: Vec<Feeder> = Vec::new();
    for table in tables {
        let line = table.line();
        let feeder = feeder(table, reader, files)?;
        if all.iter().any(|known| known.name == feeder.name) {
            let name = quoted(&feeder.name);
            return Err(ParseError(format!(
                "line {line}: feeder: {name} is the name of an earlier feeder"
            )));
        }
        all.push(feeder);
    }
    Ok(all)
}

fn feeder(
    mut table: Table<'_>,
    reader: &Reader<'_>,
    files: &dyn FileSource,
) -> Result<Feeder, ParseError> {
    let Some(node) = table.take("name") else {
        return Err(table.fault("it has no name; its columns are written {{name.column}}"));
    };
    let name = node.text()?.to_owned();
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(plain) || ["user", "iteration"].contains(&&*name) {
        let why = "a feeder's name consists of letters, digits, _ and -, and is neither user nor \
            iteration";
        return Err(node.fault(why));
    }
    let order = match table.take("order") {
        Some(node) => pick(node.text()?, &ORDERS).map_err(|why| node.fault(why))?,
        None => FeederOrder::Sequential,
    };
    let used_up = match table.take("used-up") {
        Some(_) if order == FeederOrder::Random => {
            return Err(table.fault("a random order never runs out of rows; drop used-up"));
        }
        Some(node) => Some(pick(node.text()?, &ENDS).map_err(|why| node.fault(why))?),
        None => None,
    };
    let format = match table.take("format") {
        Some(node) => Some(pick(node.text()?, &FORMATS).map_err(|why| node.fault(why))?),
        None => None,
    };
    let kinds = [table.take("file"), table.take("text"), table.take("generate")];
    let (columns, rows) = match kinds {
        [Some(path), None, None] => rows_of_file(&path, reader, files, format)?,
        // from a printed plan, which has the columns but no rows
        [Some(path), Some(text), None] if text.text()?.contains(MASK) => {
            match (rows_of_file(&path, reader, files, format), format) {
                (Err(_), Some(format)) => {
                    rows_of(&text, "the text", format, text.text()?.to_owned())?
                }
                (read, _) => read?,
            }
        }
        [None, Some(text), None] => {
            let Some(format) = format else {
                return Err(table.fault("with text give format = \"csv\" or \"jsonl\""));
            };
            rows_of(&text, "the text", format, text.text()?.to_owned())?
        }
        [None, None, Some(laws)] if format.is_none() => generated(&laws)?,
        _ => return Err(table.fault("give one of file, text (with format) and generate")),
    };
    table.close()?;
    Ok(Feeder { name, columns, rows, order, used_up })
}

fn rows_of_file(
    path: &Node<'_>,
    reader: &Reader<'_>,
    files: &dyn FileSource,
    format: Option<FeederFormat>,
) -> Result<Rows, ParseError> {
    let named = reader.settled(path)?;
    let bytes = files.read(&named).map_err(|why| path.fault(why))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| path.fault(format!("{} is not UTF-8 text", quoted(&named))))?;
    let format = format.map_or_else(|| format_of(path, &named), Ok)?;
    rows_of(path, &quoted(&named).to_string(), format, text)
}

fn format_of(node: &Node<'_>, path: &str) -> Result<FeederFormat, ParseError> {
    let ending = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "csv" => Ok(FeederFormat::Csv),
        "jsonl" | "ndjson" => Ok(FeederFormat::JsonLines),
        _ => Err(node.fault("its format is unknown: add format = \"csv\" or \"jsonl\"")),
    }
}

type Rows = (Vec<String>, FeederRows);

fn rows_of(
    node: &Node<'_>,
    what: &str,
    format: FeederFormat,
    text: String,
) -> Result<Rows, ParseError> {
    let read = match format {
        FeederFormat::Csv => read_csv(&text),
        FeederFormat::JsonLines => read_json_lines(&text),
    };
    let (columns, cells) = read.map_err(|why| node.fault(format!("{what}: {why}")))?;
    let empty = columns.iter().any(|column| column.trim().is_empty());
    let twice = (1..columns.len()).find(|at| columns[..*at].contains(&columns[*at]));
    let why = match twice {
        _ if columns.len() > COLUMNS_MAX => format!("it has more than {COLUMNS_MAX} columns"),
        _ if empty => "a column has no name; the first line names the columns".to_owned(),
        Some(at) => format!("two columns are called {}", quoted(&columns[at])),
        None if cells.is_empty() => {
            "it has no rows: a line for each row must follow, or drop the feeder".to_owned()
        }
        None => {
            let table = FeederTable { format, text, cells };
            return Ok((columns, FeederRows::Table(Arc::new(table))));
        }
    };
    Err(node.fault(format!("{what}: {why}")))
}

type Cells = (Vec<String>, Vec<Box<str>>);

fn read_csv(text: &str) -> Result<Cells, String> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(text.as_bytes());
    let columns = reader.headers().map_err(|error| error.to_string())?;
    let columns: Vec<String> = columns.iter().map(str::to_owned).collect();
    let mut cells = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| match error.kind() {
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => format!(
                "line {} has {len} fields, and the first line names {expected_len} columns",
                pos.as_ref().map_or(0, csv::Position::line)
            ),
            _ => error.to_string(),
        })?;
        if cells.len() + record.len() > CELLS_MAX {
            return Err(format!("it has more than {CELLS_MAX} fields"));
        }
        cells.extend(record.iter().map(Box::from));
    }
    Ok((columns, cells))
}

fn read_json_lines(text: &str) -> Result<Cells, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut columns: Vec<String> = Vec::new();
    let mut cells = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let at = index + 1;
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line)
            .map_err(|error| format!("line {at} is not a JSON object ({error})"))?;
        if columns.is_empty() {
            columns = object.keys().cloned().collect();
        }
        for column in &columns {
            let value = object.get(column).ok_or_else(|| {
                format!("line {at} has no {}, which the first line has", quoted(column))
            })?;
            cells.push(match value {
                serde_json::Value::String(text) => text.as_str().into(),
                other => other.to_string().into(),
            });
        }
        if cells.len() > CELLS_MAX {
            return Err(format!("it has more than {CELLS_MAX} values"));
        }
    }
    Ok((columns, cells))
}

fn generated(node: &Node<'_>) -> Result<Rows, ParseError> {
    let mut columns = Vec::new();
    let mut laws = Vec::new();
    for row in node.table()?.rest() {
        columns.push(row.key.to_owned());
        laws.push(law(&row)?);
    }
    if columns.is_empty() || columns.len() > COLUMNS_MAX {
        return Err(node.fault(format!("generate has 1 to {COLUMNS_MAX} columns")));
    }
    Ok((columns, FeederRows::Generated(laws)))
}

fn law(node: &Node<'_>) -> Result<ColumnLaw, ParseError> {
    if !node.is_text() {
        let list = node.list().iter().map(Node::text_or_number).collect::<Result<Vec<_>, _>>()?;
        if list.is_empty() {
            return Err(node.fault("the list is empty; give the values to draw from"));
        }
        return Ok(ColumnLaw::OneOf(list));
    }
    let text = node.text_or_number()?;
    if text == "uuid" {
        return Ok(ColumnLaw::Uuid);
    }
    if let Some((from, to)) = text.split_once("..") {
        let whole = |part: &str| part.trim().parse::<i64>().ok();
        return match (whole(from), whole(to)) {
            (Some(from), Some(to)) if from <= to => Ok(ColumnLaw::Range(from, to)),
            _ => Err(node.fault("a range is two whole numbers, the smaller first: 1..1000")),
        };
    }
    let alphabet: Option<&'static [u8]> = match text.split_once(':').map(|(kind, _)| kind) {
        Some("hex") => Some(b"0123456789abcdef"),
        Some("digits") => Some(b"0123456789"),
        Some("letters") => Some(b"abcdefghijklmnopqrstuvwxyz"),
        _ => None,
    };
    let length = text.split_once(':').and_then(|(_, length)| length.parse().ok());
    match (alphabet, length) {
        (Some(alphabet), Some(length)) if (1..=DRAWN_MAX).contains(&length) => {
            Ok(ColumnLaw::Drawn(alphabet, length))
        }
        _ => Err(node.fault(format!(
            "{} is not a generator; give 1..1000, hex:16, digits:6, letters:8, uuid, or a list to \
             draw from",
            quoted(&text)
        ))),
    }
}
