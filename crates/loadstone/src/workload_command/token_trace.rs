//! `loadstone workload import` for a trace of a language model's requests: a CSV file with the time
//! and the token counts of each request, in the formats of Azure (LLM inference traces) and
//! BurstGPT.

use super::access_log::{at_speed, lines};
use crate::exit::Failure;
use args::ImportArgs;
use plan::{Arrivals, Load, ModelApi, ModelRequest, Plan, Streaming, TargetPlan};
use std::io::BufRead;
use units::{Nanos, Rate, quoted, show};

/// Maximum number of bytes of all prompts of a plan.
const PROMPTS_MAX: usize = 64 << 20;
/// Maximum number of requests of a plan.
const ROWS_MAX: usize = 200_000;
/// Maximum number of tokens of a prompt or a response.
const INPUT_MAX: u64 = 1_000_000;

/// Names of columns in known traces, in lower case.
const TIME: [&str; 4] = ["timestamp", "time", "arrived_at", "arrival_time"];
const INPUT: [&str; 6] = [
    "contexttokens",
    "request tokens",
    "input_tokens",
    "prompt_tokens",
    "num_prefill_tokens",
    "input_length",
];
const OUTPUT: [&str; 6] = [
    "generatedtokens",
    "response tokens",
    "output_tokens",
    "completion_tokens",
    "num_decode_tokens",
    "output_length",
];

/// Positions of the columns in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
    time: usize,
    input: usize,
    output: usize,
}

impl Columns {
    /// Finds the columns by the first line; `None` if the file is not a trace of this kind.
    fn parse(header: &str) -> Option<Columns> {
        let names: Vec<String> = cells(header).map(str::to_lowercase).collect();
        let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        Some(Columns { time: find(&TIME)?, input: find(&INPUT)?, output: find(&OUTPUT)? })
    }
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"'))
}

/// Returns whether a text begins like a trace of this kind.
pub(super) fn begins(text: &str) -> bool {
    text.lines().next().and_then(Columns::parse).is_some()
}

/// One request of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TraceRow {
    /// Seconds since an instant common to all rows.
    at: f64,
    input: u64,
    output: u64,
}

impl TraceRow {
    /// # Errors
    /// Fails if the line is not a request; the text states why.
    fn parse(line: &str, columns: Columns) -> Result<TraceRow, String> {
        let cells: Vec<&str> = cells(line).collect();
        let cell = |place: usize| cells.get(place).copied().unwrap_or_default();
        let tokens = |place: usize| {
            // failed requests have no count in published traces
            if cells.get(place).is_some_and(|it| it.is_empty()) {
                return Ok(0);
            }
            let count = cell(place).parse::<f64>().ok().filter(|it| it.fract() == 0.0);
            let count = count.filter(|it| (0.0..=INPUT_MAX as f64).contains(it));
            count.map(|it| it as u64).ok_or_else(|| {
                format!("{} is not a number of tokens up to {INPUT_MAX}", quoted(cell(place)))
            })
        };
        let at = seconds(cell(columns.time));
        let at = at.ok_or_else(|| format!("{} is not a time", quoted(cell(columns.time))))?;
        Ok(TraceRow { at, input: tokens(columns.input)?, output: tokens(columns.output)? })
    }
}

/// Parses seconds, or a date and time such as `2023-11-16 18:17:03.9799600` or with `T`. An offset
/// from UTC is ignored, because it is the same in all rows.
fn seconds(text: &str) -> Option<f64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return seconds.is_finite().then_some(seconds);
    }
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let time = time.split(['Z', '+', '-']).next()?;
    let mut parts = time.splitn(3, ':');
    let hours = parts.next()?.parse::<u32>().ok().filter(|it| *it < 24)?;
    let minutes = parts.next()?.parse::<u32>().ok().filter(|it| *it < 60)?;
    let seconds = parts.next()?.parse::<f64>().ok().filter(|it| (0.0..61.0).contains(it))?;
    let of_day = f64::from(hours * 3_600 + minutes * 60) + seconds;
    Some(days(year, month, day) as f64 * 86_400.0 + of_day)
}

/// Returns days since 1970 in the Gregorian calendar. Years are shifted to begin in March, so that
/// a leap day is the last day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_year - 719_468
}

const WORDS: [&str; 16] = [
    " the", " of", " and", " to", " in", " is", " that", " for", " it", " as", " was", " with",
    " on", " by", " at", " from",
];

/// Makes a prompt of about this number of tokens from short words, which are single tokens in
/// common vocabularies. The prompt begins with the number of the request, so that servers cannot
/// reuse a cached prefix.
fn prompt(number: usize, tokens: u64) -> String {
    let mut text = (number + 1).to_string();
    for place in 1..tokens as usize {
        text.push_str(WORDS[(number.wrapping_mul(5) + place * 7 + place / 16) % WORDS.len()]);
    }
    text
}

/// Returns the plan that repeats the trace, with its description.
///
/// # Errors
/// Fails for a file that cannot be read, has no request, or is above a bound.
pub(super) fn plan(input: &mut dyn BufRead, args: &ImportArgs) -> Result<(Plan, String), Failure> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", quoted(&args.log)));
    let mut columns = None;
    let (mut rows, mut number, mut empty) = (Vec::new(), 0_u64, 0_u64);
    lines(&args.log, input, &mut |line| {
        number += 1;
        let Some(columns) = columns else {
            columns = Columns::parse(line);
            return columns.map(drop).ok_or_else(|| {
                wrong(
                    "the first line must name columns with the time and the tokens of request \
                       and response, as TIMESTAMP,ContextTokens,GeneratedTokens"
                        .to_owned(),
                )
            });
        };
        if line.trim().is_empty() {
            return Ok(());
        }
        let row = TraceRow::parse(line, columns);
        let row = row.map_err(|why| wrong(format!("line {number}: {why}")))?;
        match row.input > 0 && row.output > 0 {
            true if rows.len() == ROWS_MAX => {
                return Err(wrong(format!(
                    "it has more than {ROWS_MAX} requests; import a part of the file"
                )));
            }
            true => rows.push(row),
            false => empty += 1,
        }
        Ok(())
    })?;
    if rows.is_empty() {
        return Err(wrong("it has no request with tokens".to_owned()));
    }
    rows.sort_by(|a, b| a.at.total_cmp(&b.at));
    let due = |row: &TraceRow| at_speed(Nanos::from_secs_f64(row.at - rows[0].at), args.speed());
    let due: Vec<Nanos> = rows.iter().map(due).collect();
    let span = due.last().copied().unwrap_or_default();
    let plan = replay(&rows, due, args).map_err(wrong)?;
    let sum = |of: fn(&TraceRow) -> u64| show::count(rows.iter().map(of).sum());
    let mut text = format!(
        "{} requests in {}: {} tokens of prompts, {} of responses at most",
        show::count(rows.len() as u64),
        show::duration(span),
        sum(|row| row.input),
        sum(|row| row.output)
    );
    if empty > 0 {
        text += &format!("; {} without tokens skipped", show::count(empty));
    }
    Ok((plan, text))
}

/// # Errors
/// Fails if the prompts are too long together.
fn replay(rows: &[TraceRow], due: Vec<Nanos>, args: &ImportArgs) -> Result<Plan, String> {
    let mut url = args.base.clone().expect("the options were checked against the format");
    if url.path() == "/" {
        url.set_path("/v1/chat/completions");
    }
    let anthropic = url.path().ends_with("/messages");
    let api = if anthropic { ModelApi::Anthropic } else { ModelApi::OpenAi };
    let mut plan = Plan::for_targets(Vec::new());
    let (mut targets, mut bytes) = (Vec::new(), 0);
    for (number, row) in rows.iter().enumerate() {
        let prompt = prompt(number, row.input);
        bytes += prompt.len();
        if bytes > PROMPTS_MAX {
            return Err(format!(
                "the prompts of its first {} requests exceed {}; import a part of the file",
                number + 1,
                show::bytes(PROMPTS_MAX as u64)
            ));
        }
        let tokens_max = u32::try_from(row.output).ok();
        let model = args.model.clone();
        plan.ask_model(api, &ModelRequest { model, prompt: Some(prompt), tokens_max });
        let body = plan.request.body.take();
        targets.push(TargetPlan {
            body,
            name: Some(url.path().to_owned()),
            ..TargetPlan::new(url.clone())
        });
    }
    let headers = std::mem::take(&mut plan.request.headers);
    let mut plan = Plan::for_targets(targets);
    plan.request.headers = headers;
    plan.request.method = "POST".to_owned();
    plan.measure.stream = Some(Streaming::Model(api));
    plan.sequence = (0..rows.len() as u32).collect();
    let rate = Rate(due.len() as f64);
    let arrivals = Arrivals { at: Some(due.into()), ..Arrivals::constant(rate) };
    plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(rows.len() as u64));
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_traces_are_recognized() {
        let row = |header: &str, line: &str| TraceRow::parse(line, Columns::parse(header).unwrap());
        let azure = "TIMESTAMP,ContextTokens,GeneratedTokens";
        let first = row(azure, "2023-11-16 18:17:03.9799600,4808,10").unwrap();
        let second = row(azure, "2023-11-16 18:17:04.0319600,3180,8").unwrap();
        assert_eq!((first.input, first.output), (4_808, 10));
        assert!((second.at - first.at - 0.052).abs() < 1e-6);
        let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type";
        let found = row(burst, "45.0,ChatGPT,472,18,490,Conversation log");
        assert_eq!(found, Ok(TraceRow { at: 45.0, input: 472, output: 18 }));
        let failed = row(azure, "5,1,");
        assert_eq!(failed, Ok(TraceRow { at: 5.0, input: 1, output: 0 }));
        assert!(!begins("GET / HTTP/1.1,a,b"));
        for (line, expected) in [
            ("x,1,2", "is not a time"),
            ("2023-13-01 00:00:00,1,2", "is not a time"),
            ("5,-1,2", "is not a number of tokens"),
            ("5,1", "is not a number of tokens"),
        ] {
            let why = row(azure, line).unwrap_err();
            assert!(why.contains(expected), "{line}: {why}");
        }
    }

    #[test]
    fn dates_are_days_apart() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2024, 3, 1) - days(2024, 2, 28), 2);
        assert_eq!(seconds("2024-05-10T00:00:00.5+00:00"), Some(1_715_299_200.5));
        assert_eq!(seconds("2024-05-10 00:00:00.5-05:00"), Some(1_715_299_200.5));
    }

    #[test]
    fn prompts_have_their_words_and_differ_from_the_start() {
        assert_eq!(prompt(6, 1), "7");
        assert_eq!(prompt(6, 200).split(' ').count(), 200);
        assert_ne!(prompt(0, 5).as_bytes()[0], prompt(1, 5).as_bytes()[0]);
    }
}
