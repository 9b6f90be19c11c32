//! Settings that apply to all samplers of a tree.

use super::DraftReader;
use super::elements::{Element, property};
use crate::draft::{Checks, DataTable, DraftRule, TableRows};
use crate::text::{Maker, Text};
use std::collections::BTreeMap;
use units::Nanos;

/// Maximum length of a data file that becomes part of a plan.
const INLINE_MAX: usize = 4 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct JmxScope {
    /// Properties of the HTTP defaults.
    pub(super) defaults: BTreeMap<String, String>,
    pub(super) headers: Vec<(String, Text)>,
    pub(super) user: Option<Text>,
    /// Pause before each sampler.
    pub(super) pause: (Nanos, Nanos),
    pub(super) expect: Checks,
    pub(super) captures: Vec<crate::draft::Capture>,
    /// Samplers per second that a throughput timer permits.
    pub(super) throughput: Option<f64>,
}

/// Returns whether the element configures other elements.
pub(super) fn is_config(kind: &str) -> bool {
    const KINDS: [&str; 30] = [
        "ConfigTestElement",
        "HeaderManager",
        "CookieManager",
        "CacheManager",
        "DNSCacheManager",
        "AuthManager",
        "Arguments",
        "CSVDataSet",
        "CounterConfig",
        "RandomVariableConfig",
        "UserParameters",
        "KeystoreConfig",
        "ConstantTimer",
        "UniformRandomTimer",
        "GaussianRandomTimer",
        "PoissonRandomTimer",
        "ConstantThroughputTimer",
        "PreciseThroughputTimer",
        "SyncTimer",
        "ResponseAssertion",
        "JSONPathAssertion",
        "DurationAssertion",
        "SizeAssertion",
        "RegexExtractor",
        "BoundaryExtractor",
        "JSONPostProcessor",
        "HtmlExtractor",
        "XPathExtractor",
        "XPath2Extractor",
        "XPathAssertion",
    ];
    KINDS.contains(&kind)
        || matches!(
            kind,
            "JSR223Assertion"
                | "BeanShellAssertion"
                | "JSR223Timer"
                | "BeanShellTimer"
                | "JSR223PreProcessor"
                | "BeanShellPreProcessor"
                | "JSR223PostProcessor"
                | "BeanShellPostProcessor"
                | "JMESPathExtractor"
                | "JMESPathAssertion"
                | "HTMLAssertion"
                | "XMLAssertion"
                | "XMLSchemaAssertion"
                | "MD5HexAssertion"
                | "VariableThroughputTimer"
                | "JDBCDataSource"
                | "LoginConfig"
                | "FTPDefaults"
                | "TestAction"
        )
}

impl DraftReader<'_> {
    /// Returns the outer scope with the additions of a tree's elements.
    pub(super) fn scope(&mut self, all: &[Element<'_, '_>], outer: &JmxScope) -> JmxScope {
        let mut scope = outer.clone();
        for element in all {
            match element.kind() {
                "ConfigTestElement" => self.defaults(element, &mut scope),
                "HeaderManager" => self.headers(element, &mut scope),
                "CookieManager" => self.cookies(element, &mut scope),
                "AuthManager" => self.auth(element, &mut scope),
                "Arguments" => {
                    let variables = element.variables("");
                    self.define(&variables);
                }
                "CSVDataSet" => self.csv(element),
                "CounterConfig" | "RandomVariableConfig" => self.add_generator(element),
                "UserParameters" => self.user_parameters(element),
                "ConstantTimer"
                | "UniformRandomTimer"
                | "GaussianRandomTimer"
                | "PoissonRandomTimer" => {
                    self.timer(element, &mut scope);
                }
                "ConstantThroughputTimer" | "PreciseThroughputTimer" => {
                    self.throughput(element, &mut scope);
                }
                "SyncTimer" => self.leave_out(element, "users do not wait for each other here"),
                "CacheManager" => {
                    self.leave_out(element, "responses are not cached here: every request is sent")
                }
                "DNSCacheManager" => {
                    self.leave_out(element, "names are resolved once here; use --resolve")
                }
                kind if is_config(kind) => self.checks(element, &mut scope),
                _ => {}
            }
        }
        scope
    }

    /// Reads `HTTP Request Defaults`: values for empty settings of samplers.
    fn defaults(&mut self, element: &Element<'_, '_>, scope: &mut JmxScope) {
        if element.gui() != "HttpDefaultsGui" && element.property("HTTPSampler.domain").is_none() {
            return self.leave_out(element, "only defaults for HTTP requests are imported");
        }
        for node in element.node.children().filter(roxmltree::Node::is_element) {
            let (Some(name), Some(text)) = (node.attribute("name"), node.text()) else { continue };
            if name.starts_with("HTTPSampler.") && !text.trim().is_empty() {
                scope.defaults.insert(name.to_owned(), text.trim().to_owned());
            }
        }
        let list = element.variables("HTTPsampler.Arguments");
        if list.iter().any(|(_, value, _)| !value.is_empty()) {
            self.leave_out(element, "parameters for all requests: add them to the steps");
        }
    }

    fn headers(&mut self, element: &Element<'_, '_>, scope: &mut JmxScope) {
        for node in element.items("HeaderManager.headers") {
            let text =
                |name: &str| property(node, name).and_then(|it| it.text()).unwrap_or_default();
            let (name, value) =
                (text("Header.name").trim().to_owned(), text("Header.value").to_owned());
            if name.is_empty() {
                continue;
            }
            let value = self.text(value.trim(), node);
            scope.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            scope.headers.push((name, value));
        }
    }

    fn cookies(&mut self, element: &Element<'_, '_>, scope: &mut JmxScope) {
        self.draft.settings.no_cookies = false;
        if element.is_true("CookieManager.clearEachIteration") {
            self.leave_out(element, "clearEachIteration: a user of a closed load keeps its cookies; with --rate each iteration is a new user");
        }
        let mut fixed = Text::default();
        for node in element.items("CookieManager.cookies") {
            let name = node
                .attribute("name")
                .or(node.attribute("testname"))
                .unwrap_or_default()
                .to_owned();
            let value = property(node, "Cookie.value").and_then(|it| it.text()).unwrap_or_default();
            let value = self.text(value, node);
            fixed.push_str(if fixed.is_empty() { "" } else { "; " });
            fixed.push_str(&format!("{name}="));
            fixed.append(value);
        }
        if !fixed.is_empty() {
            scope.headers.push(("Cookie".to_owned(), fixed));
        }
    }

    fn auth(&mut self, element: &Element<'_, '_>, scope: &mut JmxScope) {
        let list = element.items("AuthManager.auth_list");
        let Some(node) = list.first().copied() else { return };
        let text = |name: &str| {
            property(node, name).and_then(|it| it.text()).unwrap_or_default().to_owned()
        };
        let mechanism = text("Authorization.mechanism");
        if list.len() > 1 || !["", "BASIC", "BASIC_DIGEST"].contains(&mechanism.as_str()) {
            self.leave_out(element, "only the first login is imported, by the Basic scheme");
        }
        let mut user = self.text(&text("Authorization.username"), node);
        user.push_str(":");
        let password = self.text(&text("Authorization.password"), node);
        user.append(password);
        scope.user = Some(user);
    }

    /// Reads a data file: by its name if its first line names the columns, otherwise with its rows.
    fn csv(&mut self, element: &Element<'_, '_>) {
        let file = self.settled(&element.text("filename"), element);
        let names = self.settled(&element.text("variableNames"), element);
        let delimiter = match self.settled(&element.text("delimiter"), element).as_str() {
            "" => ",".to_owned(),
            "\\t" => "\t".to_owned(),
            other => other.to_owned(),
        };
        let given: Vec<String> =
            names.split([',', ';']).map(|name| name.trim().to_owned()).collect();
        let given: Vec<String> = given.into_iter().filter(|name| !name.is_empty()).collect();
        let skip = element.is_true("ignoreFirstLine");
        let read = self.request.read(&file).ok();
        if let Some((path, bytes)) = read.as_ref().filter(|_| given.is_empty() && delimiter == ",")
            && let Some(columns) = named_columns(bytes)
        {
            return self.add_table(element, columns, TableRows::File(path.clone()));
        }
        let rows = read.map(|(_, bytes)| bytes).filter(|bytes| bytes.len() <= INLINE_MAX);
        let rows = rows.and_then(|bytes| {
            csv_rows(&bytes, delimiter.as_bytes().first().copied().unwrap_or(b','))
        });
        let (columns, mut rows) = match (given.is_empty(), rows) {
            (true, Some(rows)) if !rows.is_empty() => (rows[0].clone(), rows[1..].to_vec()),
            (false, Some(rows)) => (given, rows.into_iter().skip(usize::from(skip)).collect()),
            (_, None) => {
                let why = format!(
                    "{} cannot be read; rows with the text MISSING take its place, replace text = … by file = …",
                    units::quoted(&file)
                );
                self.leave_out(element, &why);
                let columns = if given.is_empty() { vec!["value".to_owned()] } else { given };
                let row = columns.iter().map(|_| "MISSING".to_owned()).collect();
                (columns, vec![row])
            }
            (true, Some(_)) => return self.leave_out(element, "its file is empty"),
        };
        rows.retain(|row| row.len() >= columns.len());
        rows.iter_mut().for_each(|row| row.truncate(columns.len()));
        if rows.is_empty() {
            return self.leave_out(element, "its file has no row with all columns");
        }
        let text = csv_text(&columns, &rows);
        self.add_table(element, columns, TableRows::Inline(text));
    }

    fn add_table(&mut self, element: &Element<'_, '_>, columns: Vec<String>, rows: TableRows) {
        if element.text("shareMode").starts_with("shareMode.thread") {
            self.leave_out(element, "shareMode: its rows are shared by all users, in turn");
        }
        let name = format!("data{}", self.draft.tables.len() + 1);
        let stop = element.text("recycle") == "false";
        self.draft.tables.push(DataTable { name, columns, rows, order: "sequential", stop });
    }

    /// Resolves a text whose values are all known now.
    pub(super) fn settled(&mut self, source: &str, element: &Element<'_, '_>) -> String {
        let text = self.text(source, element.node);
        let vars = self.draft.vars.clone();
        crate::names::Names::new(vars, Vec::new(), &[])
            .expanded(&text, 0)
            .settled()
            .unwrap_or_else(|| source.to_owned())
    }

    fn add_generator(&mut self, element: &Element<'_, '_>) {
        let counter = element.kind() == "CounterConfig";
        let (name, from, to) = match counter {
            true => ("CounterConfig.name", "CounterConfig.start", "CounterConfig.end"),
            false => ("variableName", "minimumValue", "maximumValue"),
        };
        let name = element.text(name);
        let whole = |text: String| text.trim().parse::<i64>().ok();
        let from = whole(self.settled(&element.text(from), element)).unwrap_or(i64::from(counter));
        let to = whole(self.settled(&element.text(to), element)).unwrap_or(i64::MAX / 4);
        if name.is_empty() {
            return;
        }
        if counter
            && (element.is_true("CounterConfig.per_user")
                || !["", "1"].contains(&element.text("CounterConfig.incr").as_str()))
        {
            self.leave_out(element, "all users share the counter, which increases by one");
        }
        if !element.text("CounterConfig.format").is_empty()
            || !element.text("outputFormat").is_empty()
        {
            self.leave_out(element, "its format: the number is sent as it is");
        }
        match counter {
            true => self.functions.counter(name, from, from.max(to)),
            false => self.functions.made.push((name, Maker::Range(from.min(to), from.max(to)))),
        }
    }

    fn user_parameters(&mut self, element: &Element<'_, '_>) {
        let texts = |node: roxmltree::Node<'_, '_>| -> Vec<String> {
            node.children()
                .filter(roxmltree::Node::is_element)
                .map(|it| it.text().unwrap_or_default().to_owned())
                .collect()
        };
        let columns: Vec<String> = element
            .items("UserParameters.names")
            .iter()
            .map(|it| it.text().unwrap_or_default().to_owned())
            .collect();
        let rows: Vec<Vec<String>> =
            element.items("UserParameters.thread_values").into_iter().map(texts).collect();
        let rows: Vec<Vec<String>> =
            rows.into_iter().filter(|row| row.len() == columns.len()).collect();
        let distinct =
            columns.iter().collect::<std::collections::BTreeSet<_>>().len() == columns.len();
        if columns.is_empty()
            || rows.is_empty()
            || !distinct
            || columns.iter().any(|it| it.trim().is_empty())
        {
            return self.leave_out(element, "its table has no rows");
        }
        let name = format!("data{}", self.draft.tables.len() + 1);
        let text = csv_text(&columns, &rows);
        let table = DataTable {
            name,
            columns,
            rows: TableRows::Inline(text),
            order: "unique",
            stop: false,
        };
        self.draft.tables.push(table);
    }

    fn timer(&mut self, element: &Element<'_, '_>, scope: &mut JmxScope) {
        let mut millis = |name: &str| {
            let text = self.settled(&element.text(name), element);
            let value: f64 = text.parse().unwrap_or(0.0);
            Nanos((value.clamp(0.0, 86_400_000.0) * 1e6) as u64)
        };
        let (delay, range) = (millis("ConstantTimer.delay"), millis("RandomTimer.range"));
        let (low, high) = match element.kind() {
            "ConstantTimer" => (delay, delay),
            "UniformRandomTimer" => (delay, Nanos(delay.0 + range.0)),
            "PoissonRandomTimer" => (Nanos(delay.0 + range.0), Nanos(delay.0 + range.0)),
            _ => {
                // a uniform distribution around the mean with the same deviation
                let half = (range.0 as f64 * 3.0_f64.sqrt()) as u64;
                (Nanos(delay.0.saturating_sub(half)), Nanos(delay.0 + half))
            }
        };
        if ["GaussianRandomTimer", "PoissonRandomTimer"].contains(&element.kind()) {
            self.draft.notes.push(format!(
                "{} {}: its distribution is replaced by a uniform one with the same mean.",
                element.kind(),
                element.name()
            ));
        }
        scope.pause = (Nanos(scope.pause.0.0 + low.0), Nanos(scope.pause.1.0 + high.0));
    }

    fn throughput(&mut self, element: &Element<'_, '_>, scope: &mut JmxScope) {
        let number =
            |text: String| text.trim().parse::<f64>().ok().filter(|it| *it > 0.0 && it.is_finite());
        let value = number(self.settled(&element.text("throughput"), element));
        let period = match element.kind() {
            "ConstantThroughputTimer" => 60.0,
            _ => number(self.settled(&element.text("throughputPeriod"), element)).unwrap_or(60.0),
        };
        match value {
            Some(value) => scope.throughput = Some(value / period),
            None => self.leave_out(element, "its throughput is not a number above 0"),
        }
    }

    fn checks(&mut self, element: &Element<'_, '_>, scope: &mut JmxScope) {
        let name = "all requests".to_owned();
        let mut step = crate::draft::DraftStep { name, ..crate::draft::DraftStep::default() };
        self.check(element, &mut step);
        let Checks {
            status, headers, exact, contains, lacks, regex, json, at_most, length, ..
        } = step.expect;
        let expect = &mut scope.expect;
        expect.status.extend(status);
        expect.headers.extend::<Vec<(String, DraftRule)>>(headers);
        expect.contains.extend(contains);
        expect.lacks.extend(lacks);
        expect.regex.extend(regex);
        expect.json.extend(json);
        expect.exact = exact.or(expect.exact.take());
        expect.at_most = at_most.or(expect.at_most);
        expect.length = length.or(expect.length);
        scope.captures.extend(step.captures);
    }
}

/// Returns the columns of a file that a plan can read unchanged: a line with names, then rows of
/// that length.
fn named_columns(bytes: &[u8]) -> Option<Vec<String>> {
    let rows = csv_rows(bytes, b',')?;
    let columns = rows.first()?.clone();
    let distinct: std::collections::BTreeSet<&String> = columns.iter().collect();
    let whole = rows.len() > 1 && rows.iter().all(|row| row.len() == columns.len());
    let good =
        distinct.len() == columns.len() && columns.iter().all(|column| !column.trim().is_empty());
    (whole && good && std::str::from_utf8(bytes).is_ok()).then_some(columns)
}

/// Returns the rows of a file; rows may differ in length.
pub(crate) fn csv_rows(bytes: &[u8], delimiter: u8) -> Option<Vec<Vec<String>>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(bytes);
    let row = |record: Result<csv::StringRecord, csv::Error>| {
        record.ok().map(|record| record.iter().map(str::to_owned).collect())
    };
    reader.records().map(row).collect()
}

pub(crate) fn csv_text(columns: &[String], rows: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut good = writer.write_record(columns).is_ok();
    for row in rows {
        good &= writer.write_record(row).is_ok();
    }
    let bytes = writer.into_inner().unwrap_or_default();
    debug_assert!(good, "a Vec accepts all rows");
    String::from_utf8(bytes).unwrap_or_default()
}
