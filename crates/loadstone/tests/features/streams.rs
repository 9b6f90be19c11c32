//! `--stream`, over sockets: the events that the built-in site sends on a schedule.

use crate::support::{Scripted, Site, measured, run, whole};
use serde_json::Value;

fn streams(args: &[&str], codes: &[i32]) -> Value {
    measured(args, codes)["streams"].clone()
}

#[test]
fn events_by_a_schedule_are_seen_as_they_were_sent() {
    let site = Site::start(&[]);
    let url = |form: &str| site.url(&format!("/events?n=6&first=40ms&every=10ms&form={form}"));
    for (http, form) in [("1.1", "sse"), ("1.1", "lines"), ("2", "sse"), ("2", "lines")] {
        let line = [&url(form), "-n", "4", "-c", "2", "--stream", form, "--http", http];
        let seen = streams(&line, &[0, 4]);
        let counts = ["whole", "empty", "cut", "events"].map(|key| seen[key].as_u64().unwrap());
        assert_eq!(counts, [4, 0, 0, 24], "{http} {form}: {seen:#}");
        assert_eq!(seen["form"], form);
        assert_eq!(whole(&seen, "/first_event_s/count"), 4);
        assert_eq!(whole(&seen, "/between_events_s/count"), 20);
        // a timer may be late, never early; and a busy machine can read two events at once
        assert!(seen["first_event_s"]["min"].as_f64() >= Some(0.039), "{seen:#}");
        let sum = seen["between_events_s"]["mean"].as_f64().unwrap() * 20.0;
        let spread = seen["mean_between_events_s"]["mean"].as_f64().unwrap() * 20.0;
        assert!((sum - spread).abs() < 0.01 * sum, "the same gaps, summed twice: {seen:#}");
        assert!(seen["stream_events_per_s"]["median"].as_f64() > Some(0.0), "{seen:#}");
    }
    // without the option responses are not examined
    let line = [&url("sse"), "-n", "1", "-c", "1"];
    assert_eq!(streams(&line, &[0, 4]), Value::Null);
}

#[test]
fn objectives_hold_streams_to_their_times() {
    let site = Site::start(&[]);
    let url = site.url("/events?n=3&first=30ms&every=20ms");
    let slo = ["--slo", "event-gap-max<=60s, events>0.1/s"];
    let line = [&url, "-n", "2", "-c", "1", "--stream", "sse"];
    measured(&[&line[..], &slo].concat(), &[0, 4]);
    let missed = ["--slo", "first-event-p99<20ms"];
    let ran = run(&[&["run"], &line[..], &missed].concat()).expect(&[1]);
    let output = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("MISSED first-event-p99<20ms"), "{output}");
    assert!(output.contains("Streams 2 whole streams (sse), 6 events: "), "{output}");
    assert!(output.contains("between events"), "{output}");
}

#[test]
fn a_step_sets_whether_it_is_a_stream() {
    let site = Site::start(&[]);
    let plan = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stream.toml");
    let text = |stream: &str| {
        format!(
            "version = 1\nurl = '{}'\n[load]\nusers = 2\n[stop]\nrequests = 4\n\
             [[journey]]\nname = 'chat'\n\
             [[journey.step]]\nname = 'page'\nurl = '/hw'\n\
             [[journey.step]]\nname = 'answer'\nurl = '/events?n=5&every=2ms'\nstream = {stream}\n",
            site.url("/")
        )
    };
    let path = plan.to_str().unwrap();
    std::fs::write(&plan, text("'sse'")).unwrap();
    let seen = streams(&[path], &[0, 4]);
    assert_eq!((whole(&seen, "/whole"), whole(&seen, "/events")), (4, 20), "{seen:#}");
    assert_eq!(seen["steps"][0]["step"], "answer", "{seen:#}");
    let of_step = ["/whole", "/events", "/first_event_s/count", "/between_events_s/count"];
    assert_eq!(of_step.map(|key| whole(&seen["steps"][0], key)), [4, 20, 4, 16], "{seen:#}");
    std::fs::write(&plan, text("false")).unwrap();
    let seen = streams(&[path, "--stream", "lines"], &[0, 4]);
    // the page itself: one line without an end
    assert_eq!((whole(&seen, "/whole"), whole(&seen, "/events")), (4, 4), "{seen:#}");
    std::fs::write(&plan, text("'xml'")).unwrap();
    let ran = run(&["run", path]).expect(&[2]);
    assert!(ran.stderr.contains("line 15: stream: \"xml\" is not a stream of events"), "{ran:#?}");
}

#[test]
fn a_stream_that_breaks_off_is_cut_and_bad_input_is_refused() {
    let server = Scripted::answering(|_| ("200 OK", "data: a\n\ndata: b\n\ndata: unfinished\n"));
    let url = format!("http://{}/", server.address);
    let seen = streams(&[&url, "-n", "3", "-c", "1", "--stream", "sse"], &[0, 4]);
    assert_eq!((whole(&seen, "/whole"), whole(&seen, "/events")), (3, 6), "{seen:#}");
    for (args, why) in [
        (&["--stream", "xml"][..], "write sse (Server-Sent Events), lines"),
        (&["--stream", "sse", "--method", "HEAD"], "--stream cannot be used with --method HEAD"),
    ] {
        let ran = run(&[&["run", &url, "-n", "1"], args].concat()).expect(&[2]);
        assert!(ran.stderr.contains(why), "{ran:#?}");
    }
}

#[test]
fn tokens_of_a_model_are_those_it_reports() {
    let site = Site::start(&[("tokens", "200/s"), ("ttft", "40ms")]);
    for (api, path) in [("openai", "/v1/chat/completions"), ("anthropic", "/v1/messages")] {
        let prompt = ["--prompt", "three short words", "--max-tokens", "5"];
        let slo = ["--slo", "ttft-p95<60s, inter-token-p99<60s, tpot-max<60s, tokens>0.1/s"];
        let line = [&site.url(path), "-n", "4", "-c", "2", "--stream", api];
        let seen = streams(&[&line[..], &prompt, &slo].concat(), &[0, 4]);
        let counts = ["/whole", "/events", "/tokens/output", "/tokens/input"];
        assert_eq!(counts.map(|key| whole(&seen, key)), [4, 20, 20, 12], "{seen:#}");
        assert_eq!((&seen["form"], &seen["tokens"]["counted_by"]), (&api.into(), &"usage".into()));
        assert!(seen["first_event_s"]["min"].as_f64() >= Some(0.039), "{seen:#}");
        assert!(seen["tokens"]["per_s"].as_f64() > Some(0.0), "{seen:#}");
    }
    // without the report of a stream its events count
    let body =
        "{\"model\":\"m\",\"stream\":true,\"max_tokens\":3,\"messages\":[{\"content\":\"a\"}]}";
    let url = site.url("/v1/chat/completions");
    let line = [&url, "-n", "2", "-c", "1", "--stream", "openai", "--body", body];
    let seen = streams(&line, &[0, 4]);
    assert_eq!(seen["tokens"]["counted_by"], "events", "{seen:#}");
    assert_eq!(whole(&seen, "/tokens/output"), 6);
    // the response in one piece is not a stream
    let whole_body = body.replace("true", "false");
    let line = [&url, "-n", "2", "-c", "1", "--stream", "openai", "--body", &whole_body];
    let ran = run(&[&["run"], &line[..], &["--json", "-"]].concat()).expect(&[1]);
    assert!(ran.stdout.contains("\"stream-failed\""), "{ran:#?}");
}

#[test]
fn a_prompt_needs_a_model_and_a_url() {
    let url = "http://127.0.0.1:1/";
    for (line, why) in [
        (&[url, "--prompt", "x"][..], "--stream"),
        (&[url, "--stream", "sse", "--prompt", "x"], "add --stream openai or anthropic"),
        (&[url, "--stream", "openai", "--max-tokens", "0"], "\"0\" is not a number of tokens"),
        (&[url, "--stream", "openai", "--prompt", "x", "--body", "y"], "--body"),
    ] {
        let ran = run(&[&["run"], line].concat()).expect(&[2]);
        assert!(ran.stderr.contains(why), "{line:?}: {ran:#?}");
    }
}
