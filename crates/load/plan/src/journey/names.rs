//! Names of the values that parts of a journey need.

use super::model::{Journey, JourneyPart, JourneyPlan, JourneyStep, StepGuard};
use super::sockets::MessageRule;
use crate::check::{Ask, Body, Content, Expect, HeaderRule, JsonRule, Text, UploadContent};
use std::collections::BTreeSet;

/// Returns the names that a request needs.
pub(super) fn of_request(ask: &Ask) -> BTreeSet<&str> {
    let mut texts: Vec<&Text> = vec![&ask.url];
    texts.extend(ask.query.iter().chain(&ask.headers).map(|(_, text)| text));
    texts.extend(&ask.user);
    match &ask.body {
        Body::None | Body::Bytes(_) => {}
        Body::Text(text) | Body::Json(text) => texts.push(text),
        Body::Form(fields) => texts.extend(fields.iter().map(|(_, text)| text)),
        Body::Multipart(fields, files) => {
            texts.extend(fields.iter().map(|(_, text)| text));
            texts.extend(files.iter().filter_map(|file| match &file.content {
                UploadContent::Text(text, _) => Some(text),
                UploadContent::Bytes(_) => None,
            }));
        }
    }
    texts.into_iter().flat_map(Text::names).collect()
}

fn of_rule(rule: &HeaderRule) -> Option<&Text> {
    match rule {
        HeaderRule::Exact(text) | HeaderRule::Contains(text) | HeaderRule::Regex(text) => {
            Some(text)
        }
        HeaderRule::Absent | HeaderRule::Present => None,
    }
}

fn of_content(content: &Content) -> Vec<&Text> {
    let mut texts: Vec<&Text> = content.exact.iter().collect();
    texts.extend(content.contains.iter().chain(&content.lacks).chain(&content.regex));
    texts.extend(content.count.iter().map(|(text, _)| text));
    texts.extend(content.json.iter().filter_map(|(_, rule)| match rule {
        JsonRule::Text(text) => Some(text),
        JsonRule::Value(_) => None,
    }));
    texts
}

fn of_expect(expect: &Expect) -> Vec<&Text> {
    let mut texts: Vec<&Text> =
        expect.headers.iter().filter_map(|(_, rule)| of_rule(rule)).collect();
    texts.extend(of_content(&expect.body));
    texts
}

fn of_step<'a>(step: &'a JourneyStep, names: &mut BTreeSet<&'a str>) {
    names.extend(of_request(&step.ask));
    let expected = step.check.iter().chain([&step.ask.expect]).flat_map(of_expect);
    let rule = step.socket.as_ref().and_then(|socket| socket.rule());
    names.extend(rule.iter().flat_map(|rule| of_content(&rule.matching)).flat_map(Text::names));
    let captured = step.ask.capture.iter().filter_map(|(_, capture)| capture.regex.as_ref());
    names.extend(expected.chain(captured).flat_map(Text::names));
    of_guard(&step.guard, names);
}

fn of_guard<'a>(guard: &'a StepGuard, names: &mut BTreeSet<&'a str>) {
    for condition in guard.when.iter().chain(&guard.until) {
        names.insert(&condition.name);
        names.extend(condition.rules.iter().filter_map(of_rule).flat_map(Text::names));
    }
}

fn of_parts<'a>(parts: &'a [JourneyPart], names: &mut BTreeSet<&'a str>) {
    for part in parts {
        match part {
            JourneyPart::Step(step) => of_step(step, names),
            JourneyPart::Block(block) => {
                of_guard(&block.guard, names);
                of_parts(&block.parts, names);
            }
        }
    }
}

impl JourneyPlan {
    /// Returns the feeders from which an iteration of the journey takes a row, by their places in
    /// the plan.
    pub fn feeders_of(&self, journey: &Journey) -> Vec<usize> {
        let mut names = BTreeSet::new();
        of_parts(&journey.parts, &mut names);
        let mut taken: BTreeSet<&str> =
            names.iter().filter_map(|name| Some(name.split_once('.')?.0)).collect();
        taken.extend(journey.script.iter().flat_map(|it| &it.feeders).map(String::as_str));
        let feeders = self.feeders.iter().enumerate();
        feeders.filter(|(_, it)| taken.contains(it.name.as_str())).map(|(at, _)| at).collect()
    }

    /// Returns the texts of all regular expressions that are known before anything is captured.
    pub fn patterns(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let rules = |rules: &mut dyn Iterator<Item = &HeaderRule>| -> Vec<String> {
            rules
                .filter_map(|rule| match rule {
                    HeaderRule::Regex(text) => text.settled(),
                    _ => None,
                })
                .collect()
        };
        let guards = |guard: &StepGuard| -> Vec<String> {
            let conditions = guard.when.iter().chain(&guard.until);
            rules(&mut conditions.flat_map(|condition| &condition.rules))
        };
        for step in self.steps() {
            let expects = step.check.iter().chain([&step.ask.expect]);
            all.extend(rules(
                &mut expects.clone().flat_map(|it| it.headers.iter().map(|(_, it)| it)),
            ));
            let matching =
                step.socket.as_ref().and_then(|socket| socket.rule()).map(|it| &it.matching);
            for content in expects.map(|expect| &expect.body).chain(matching) {
                let counted = content.count.iter().map(|(text, _)| text);
                all.extend(content.regex.iter().chain(counted).filter_map(Text::settled));
            }
            let captures = step.ask.capture.iter();
            all.extend(captures.filter_map(|(_, it)| it.regex.as_ref()?.settled()));
            all.extend(guards(&step.guard));
        }
        all
    }
}

impl MessageRule {
    /// Returns the names whose values decide which messages match.
    pub fn names(&self) -> BTreeSet<&str> {
        of_content(&self.matching).into_iter().flat_map(Text::names).collect()
    }
}

impl JourneyStep {
    /// Returns whether its request is constant.
    pub fn is_settled(&self) -> bool {
        of_request(&self.ask).is_empty()
    }
}
