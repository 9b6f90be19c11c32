//! Several loads at once, and loads in stages, as files.

use super::Texts;
use crate::*;
use units::Nanos;

fn read(text: &str) -> Result<Plan, String> {
    let text = format!("version = 1\n{text}");
    from_toml(&text, &Texts([].into())).map_err(|error| error.0)
}

const TWO: &str = "
[[targets]]
url = 'http://h/a'
name = 'a'
[[targets]]
url = 'http://h/b'
name = 'b'
[[scenario]]
name = 'reading'
load = { users = 3, think = '1s' }
[[scenario]]
name = 'writing'
targets = ['b']
start = '5s'
duration = '20s'
load = { stages = '10s:0..50/s, 10s:50/s', arrivals = 'poisson' }
";

#[test]
fn scenarios_are_read_and_printed() {
    let plan = read(TWO).unwrap();
    assert_eq!(validate(&plan), Ok(()));
    assert_eq!(plan.stop.duration, Some(Nanos::from_secs(25)), "until the last of them has ended");
    let parts: Vec<&[u32]> = plan.scenarios.iter().map(|it| it.parts.as_slice()).collect();
    assert_eq!(parts, [&[0, 1][..], &[1]]);
    assert_eq!(plan.load, plan.scenarios[0].load);
    let printed = to_toml(&plan, Secrets::Shown);
    assert_eq!(from_toml(&printed, &NoFiles).unwrap(), plan, "{printed}");
    assert!(!printed.contains("[load]"), "{printed}");
}

#[test]
fn each_scenario_has_a_load_over_the_whole_run() {
    let plan = read(TWO).unwrap();
    let lanes = plan.lanes();
    assert_eq!((&lanes[0].stages, lanes[0].seed), (&None, plan.seed));
    assert_ne!(lanes[1].seed, plan.seed, "arrivals of several loads do not coincide");
    let levels = &lanes[1].stages.as_ref().unwrap().levels;
    let spans: Vec<u64> =
        levels.stages().iter().map(|stage| stage.over.0 / 1_000_000_000).collect();
    assert_eq!(spans, [5, 10, 10, 0], "nothing before, and nothing after");
    assert_eq!((levels.first(), levels.highest(), levels.last()), (0.0, 50.0, 0.0));
    assert_eq!(lanes[1].sequence, [1]);
}

#[test]
fn stages_replace_users_and_rate() {
    let plan = read("url = 'h'\n[load]\nstages = '30s:0..100, 2m:100, 10s:0'\n").unwrap();
    let users = Load::Closed { users: 100, think: Think::None, session: None };
    assert_eq!((&plan.load, plan.stop.duration), (&users, Some(Nanos::from_secs(160))));
    assert_eq!(validate(&plan), Ok(()));
    let longer = "url = 'h'\n[load]\nstages = '1s:5'\n[stop]\nduration = '9s'\n";
    assert_eq!(read(longer).unwrap().stop.duration, Some(Nanos::from_secs(9)));
}

#[test]
fn contradictions_are_refused() {
    let describe = |text: &str| match read(text) {
        Err(why) => why,
        Ok(plan) => match validate(&plan) {
            Ok(()) => "nothing".to_owned(),
            Err(problems) => {
                let texts = problems.into_iter().map(|problem| problem.text);
                texts.collect::<Vec<_>>().join("\n")
            }
        },
    };
    let all: Vec<String> = [
        "url = 'h'\n[load]\nstages = '5s'",
        "url = 'h'\n[load]\nusers = 5\nstages = '5s:5/s'",
        "url = 'h'\n[load]\nstages = '5s:0..5'\n[stop]\nwarmup = '1s'",
        "url = 'h'\n[load]\nstages = '0s:5'\n[stop]\nduration = false",
        "url = 'h'\n[load]\nusers = 5\n[[scenario]]\nname = 'a'\nload = { users = 1 }",
        "url = 'h'\n[[scenario]]\nload = { users = 1 }",
        "url = 'h'\n[[scenario]]\nname = 'a'",
        "url = 'h'\n[[scenario]]\nname = 'a'\nload = { user = 1 }",
        "url = 'h'\n[[scenario]]\nname = 'a'\ntargets = ['b']\nload = { users = 1 }",
        "url = 'h'\n[[scenario]]\nname = 'a'\njourneys = ['b']\nload = { users = 1 }",
        "url = 'h'\n[stop]\nrequests = 5\n[[scenario]]\nname = 'a'\nload = { users = 1 }",
        "url = 'h'\n[[scenario]]\nname = 'a'\nstart = '10s'\nload = { users = 0 }",
        "url = 'h'\n[[scenario]]\nname = 'a'\nload = { users = 1 }\n\
         [[scenario]]\nname = 'a'\nload = { users = 1 }",
    ]
    .map(describe)
    .into();
    insta::assert_snapshot!(all.join("\n"));
}
