//! Requirements on responses, files and folders.

use super::super::json::JsonPlace;
use super::super::model::{Content, Entries, Expect, HeaderRule, JsonRule, Wanted};
use super::super::node::{Node, Table, pick};
use super::super::text::Text;
use super::Reader;
use units::ParseError;

const OUTCOMES: [(&str, Wanted); 4] = [
    ("answer", Wanted::Response),
    ("closed", Wanted::Closed),
    ("refused", Wanted::Refused),
    ("timeout", Wanted::TimedOut),
];

impl Reader<'_> {
    /// Reads `expect` of a request.
    pub(super) fn expect(&self, table: &mut Table<'_>) -> Result<Expect, ParseError> {
        let Some(node) = table.take("expect") else { return Ok(Expect::default()) };
        self.expectations(&node)
    }

    /// Reads the expectations in a table without further keys.
    pub(crate) fn expectations(&self, node: &Node<'_>) -> Result<Expect, ParseError> {
        let mut table = node.table()?;
        let expect = self.expectations_in(&mut table)?;
        table.close()?;
        Ok(expect)
    }

    /// Reads the expectations in a table that may have further keys.
    pub(crate) fn expectations_in(&self, table: &mut Table<'_>) -> Result<Expect, ParseError> {
        let mut expect = Expect::default();
        if let Some(node) = table.take("outcome") {
            expect.outcome = pick(node.text()?, &OUTCOMES).map_err(|why| node.fault(why))?;
        }
        if let Some(node) = table.take("status") {
            for part in node.list() {
                let ranges = crate::rules::parse_statuses(&self.settled(&part)?);
                expect.statuses.extend(ranges.map_err(|why| part.fault(why))?);
            }
        }
        if let Some(node) = table.take("headers") {
            let rows = node.table()?.rest();
            let rule = |row: &Node<'_>| Ok((row.key.to_owned(), self.header_rule(row)?));
            expect.headers = rows.iter().map(rule).collect::<Result<_, ParseError>>()?;
        }
        if let Some(node) = table.take("body") {
            expect.body = self.content(&node)?;
        }
        (expect.at_least, expect.at_most) = self.bounds(table)?;
        let looks = !expect.statuses.is_empty()
            || !expect.headers.is_empty()
            || expect.body != Content::default();
        if expect.outcome != Wanted::Response && looks {
            return Err(table.fault(format!(
                "with outcome = {:?} there is no response whose status, headers or body could be \
                 checked",
                expect.outcome.id()
            )));
        }
        Ok(expect)
    }

    /// Reads a rule for a header: a text is the whole value; `false` and `true` mean absence and
    /// presence.
    pub(crate) fn header_rule(&self, node: &Node<'_>) -> Result<HeaderRule, ParseError> {
        if let Some(present) = node.switch() {
            return Ok(if present { HeaderRule::Present } else { HeaderRule::Absent });
        }
        if node.is_text() {
            return self.template(node).map(HeaderRule::Exact);
        }
        let mut table = node.table()?;
        let rule = match (table.take("contains"), table.take("regex")) {
            (Some(node), None) => HeaderRule::Contains(self.template(&node)?),
            (None, Some(node)) => HeaderRule::Regex(self.pattern(&node)?),
            _ => {
                return Err(
                    table.fault("give a text, true, false, { contains = … } or { regex = … }")
                );
            }
        };
        table.close()?;
        Ok(rule)
    }

    /// Reads a rule for a body: a text is the whole body; a table contains the rules.
    pub(crate) fn content(&self, node: &Node<'_>) -> Result<Content, ParseError> {
        if node.is_text() {
            return Ok(Content { exact: Some(self.template(node)?), ..Content::default() });
        }
        let mut table = node.table()?;
        let content = self.rules(&mut table)?;
        table.close()?;
        Ok(content)
    }

    /// Reads `expect` of a file.
    pub(super) fn file_content(&self, table: &mut Table<'_>) -> Result<Content, ParseError> {
        let Some(node) = table.take("expect") else {
            return Err(table.fault("a file needs an expect that describes it"));
        };
        let mut table = node.table()?;
        let content = self.rules(&mut table)?;
        table.close()?;
        if content == Content::default() {
            return Err(node.fault("its expect is empty"));
        }
        Ok(content)
    }

    /// Reads `expect` of a folder.
    pub(super) fn entries(&self, table: &mut Table<'_>) -> Result<Entries, ParseError> {
        let Some(node) = table.take("expect") else {
            return Err(table.fault("a folder needs an expect with empty = true or entries"));
        };
        let mut table = node.table()?;
        let empty = table.take("empty").map(|node| node.flag()).transpose()?;
        let entries = match (empty, table.take("entries")) {
            (Some(true), None) => Entries::Empty,
            (None, Some(node)) => {
                let names = node.list();
                let names = names.iter().map(|node| self.settled(node));
                Entries::Exactly(names.collect::<Result<_, _>>()?)
            }
            _ => return Err(table.fault("give empty = true, or entries = [\"…\"]")),
        };
        table.close()?;
        Ok(entries)
    }

    fn rules(&self, table: &mut Table<'_>) -> Result<Content, ParseError> {
        let mut content = Content {
            exact: table.take("exact").map(|node| self.template(&node)).transpose()?,
            contains: self.texts(table.take("contains"))?,
            lacks: self.texts(table.take("lacks"))?,
            length: table.take("length").map(|node| self.number(&node)).transpose()?,
            graphql: table.flag("graphql")?,
            ..Content::default()
        };
        for node in table.take("regex").iter().flat_map(Node::list) {
            content.regex.push(self.pattern(&node)?);
        }
        if let Some(node) = table.take("count") {
            for row in node.table()?.rest() {
                content.count.push((self.pattern_of(&row, row.key)?, self.number(&row)?));
            }
        }
        if let Some(node) = table.take("sha256") {
            let digest = crate::rules::parse_sha256(&self.settled(&node)?);
            content.sha256 = Some(digest.map_err(|why| node.fault(why))?);
        }
        if let Some(node) = table.take("json") {
            for row in node.table()?.rest() {
                let rule = match row.text() {
                    Ok(_) => JsonRule::Text(self.template(&row)?),
                    Err(_) => JsonRule::Value(row.json()?),
                };
                let place = JsonPlace::parse(row.key).map_err(|why| row.fault(why))?;
                content.json.push((place, rule));
            }
        }
        Ok(content)
    }

    fn texts(&self, node: Option<Node<'_>>) -> Result<Vec<Text>, ParseError> {
        let nodes = node.iter().flat_map(Node::list).collect::<Vec<_>>();
        nodes.iter().map(|node| self.template(node)).collect()
    }
}
