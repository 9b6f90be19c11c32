//! Machines that fall silent, and the machines that replace them.

use crate::{InFlight, MS, World, join, name, of_run, to_agent, word};
use fleet::protocol::agent::{Agent, AgentAction, ReadyFacts};
use fleet::protocol::manager::{AgentStage, FleetEvent, Manager};
use fleet::protocol::message::{
    Final, FromAgent, Hello, Holding, ManagerMessage, PartEnding, ToAgent, What,
};
use fleet::protocol::row::{RowHead, encode};
use fleet::protocol::stamp::Stamped;
use fleet::protocol::{DEAD_MAN, PROTOCOL};
use stats::Snapshot;
use std::collections::BTreeMap;
use units::Nanos;

fn is_lost(world: &World, agent: &str) -> bool {
    world.events.iter().any(|event| matches!(event, FleetEvent::Lost(lost, _) if lost == agent))
}

/// Makes the load last longer than the fleet is watched.
fn keep_running(world: &mut World) {
    world.members.iter_mut().for_each(|member| member.run = Some((Nanos(u64::MAX / 2), 0)));
}

#[test]
fn a_silent_agent_stops_before_its_part_is_reassigned() {
    let mut world = World::new(3, 0.0, 2);
    let start = world.go();
    world.until(Nanos::from_secs(5), |world| world.now > start);
    keep_running(&mut world);
    world.members[1].mute = true;
    let from = world.now;
    world.until(Nanos::from_secs(9), |world| is_lost(world, "A1"));
    let fence = world.manager.relieve("A1");
    // suspected after 2 s, silenced 5 s later, and not half a second is wasted
    assert!(fence > world.now && fence < from + Nanos::from_millis(8_600), "{}", (fence - from).0);
    let handover = Nanos(fence.0 + 200 * MS) - start;
    let number = world.manager.offer("A0", vec![vec![2], vec![]], 6, handover);
    world.manager.offer("A2", vec![vec![], vec![3]], 6, handover);
    // and even if it is received again before that
    world.members[1].mute = false;
    world.until(Nanos::from_secs(9), |world| world.members[1].stopped);
    assert!(world.now < fence, "it stops {} too late", (world.now - fence).0);
    let answers = |world: &World| {
        let taken = |event: &&FleetEvent| matches!(event, FleetEvent::Taken { refused: None, .. });
        world.events.iter().filter(taken).count()
    };
    world.until(Nanos::from_secs(2), |world| answers(world) == 2);
    assert_eq!(number, 0);
    let takers: Vec<usize> = world.members.iter().map(|member| member.taken.len()).collect();
    assert_eq!(takers, [1, 0, 1]);
    // each slot has one owner before the cut, and one after it
    let owned = |(share, from): &(workload::schedule::Share, Nanos)| {
        assert_eq!(*from, handover);
        share.count_of(600)
    };
    let taken: u64 = world.members.iter().flat_map(|member| &member.taken).map(owned).sum();
    let given: u64 = world.members[1].shares.iter().map(|share| share.count_of(600)).sum();
    assert_eq!(taken, given);
    assert!(!world.members[0].stopped && !world.members[2].stopped);
}

#[test]
fn an_offer_is_repeated_until_answered_and_accepted_once() {
    let mut world = World::new(2, 0.0, 4);
    let start = world.go();
    world.until(Nanos::from_secs(5), |world| world.now > start);
    keep_running(&mut world);
    let from = world.now + Nanos::from_secs(3) - start;
    // neither the offer nor the first answers arrive
    (world.members[0].cut_off, world.members[0].mute) = (true, true);
    let number = world.manager.offer("A0", vec![vec![2]], 4, from);
    world.manager.offer("A0", vec![vec![9]], 8, from);
    world.manager.offer("A0", vec![vec![3]], 4, Nanos(MS));
    let later = world.now + Nanos::from_millis(700);
    world.until(Nanos::from_secs(1), |world| world.now > later);
    assert!(world.members[0].taken.is_empty());
    world.members[0].cut_off = false;
    let later = world.now + Nanos::from_millis(700);
    world.until(Nanos::from_secs(1), |world| world.now > later);
    assert_eq!(world.members[0].taken.len(), 1);
    world.members[0].mute = false;
    let answers = |world: &World| {
        let taken = world.events.iter().filter_map(|event| match event {
            FleetEvent::Taken { number, refused, .. } => Some((*number, refused.clone())),
            _ => None,
        });
        taken.collect::<BTreeMap<_, _>>()
    };
    world.until(Nanos::from_secs(2), |world| answers(world).len() == 3);
    let refusals = answers(&world);
    assert_eq!(world.members[0].taken.len(), 1);
    assert_eq!(refusals[&number], None);
    assert!(refusals[&1].as_ref().is_some_and(|why| why.contains("below 8")), "{refusals:?}");
    assert!(refusals[&2].as_ref().is_some_and(|why| why.contains("too late")), "{refusals:?}");
}

/// The server drops messages that a manager does not read in time, and closes its connection.
#[test]
fn a_manager_that_is_too_slow_for_four_seconds_loses_no_row() {
    let mut world = World::new(3, 0.0, 5);
    let start = world.go();
    world.until(Nanos::from_secs(5), |world| world.now > start + Nanos::from_millis(400));
    // none of its messages arrive, in either direction
    world.members.iter_mut().for_each(|member| member.cut_off = true);
    let (silence, from) = (Nanos::from_secs(4), world.now);
    world.until(silence + Nanos::SECOND, |world| world.now > from + silence);
    world.messages_in_flight.retain(|(_, message_in_flight)| {
        !matches!(message_in_flight, InFlight::Row(..) | InFlight::Up(..))
    });
    world.members.iter_mut().for_each(|member| member.cut_off = false);
    let over = |world: &World| {
        world
            .manager
            .agent_entries()
            .values()
            .all(|agent_entry| agent_entry.stage == AgentStage::Over)
    };
    world.until(Nanos::from_secs(9), over);
    for (row, member) in world.members.iter().enumerate() {
        assert!(!member.stopped, "the dead man's switch came too early");
        assert_eq!(world.rows_of(row).len() as u64, crate::ROWS);
        assert!(!is_lost(&world, &name(row)));
    }
}

#[test]
fn an_agent_that_has_prepared_another_plan_is_unfit() {
    let now = Nanos::from_secs(50);
    let answer = |hash: &str| {
        let mut manager = Manager::new(2, 1, now);
        join(&mut manager, "A0", Hello { protocol: PROTOCOL, ..Hello::default() }, now);
        manager.prepare("new", &BTreeMap::new());
        let hash = hash.to_owned();
        let ready = FromAgent::Ready { step: 1, hash, workers: 1, bound: 0 };
        manager.receive("A0", of_run(2, ready), now);
        std::iter::from_fn(|| manager.event()).last()
    };
    assert_eq!(answer("new"), Some(FleetEvent::Ready));
    let Some(FleetEvent::Unfit(agent, why)) = answer("old") else {
        panic!("another plan than the manager's is carried out");
    };
    assert!(agent == "A0" && why.contains("a different plan"), "{why}");
}

#[test]
fn a_step_begins_without_those_that_are_lost() {
    let mut world = World::new(3, 0.0, 8);
    world.go();
    world.members[1].cut_off = true;
    world.until(Nanos::from_secs(12), |world| is_lost(world, "A1"));
    assert_eq!(world.manager.absent(), ["A1"]);
    world.manager.dismiss("A1");
    world.events.clear();
    // the next one leaves while the step is prepared
    world.members[2].cut_off = true;
    let sealed = [name(0), name(2)].map(|agent| (agent, vec![7; 300_000]));
    world.manager.prepare("hash", &BTreeMap::from(sealed));
    world.until(Nanos::from_secs(9), |world| is_lost(world, "A2"));
    assert!(!world.events.contains(&FleetEvent::Ready));
    world.manager.dismiss("A2");
    world.until(Nanos::SECOND, |world| world.events.contains(&FleetEvent::Ready));
    let start = world.now + Nanos::from_secs(2);
    world.manager.arm(BTreeMap::from([(name(0), vec![vec![0]])]), 1, start);
    world.until(Nanos::from_secs(2), |world| world.events.contains(&FleetEvent::Going));
    // a returning agent no longer has a place, and nothing waits for it
    world.members[1].cut_off = false;
    let hello = Hello { protocol: PROTOCOL, ..Hello::default() };
    world.manager.receive("A1", of_run(0, FromAgent::Hello(hello)), world.now);
    assert_eq!(world.manager.agent_entries().keys().collect::<Vec<_>>(), ["A0"]);
}

/// The agent can still be received; it does not learn of a next step before its own has ended.
#[test]
fn an_excluded_agent_is_not_expected_in_the_next_step() {
    let mut world = World::new(2, 0.0, 8);
    let start = world.go();
    world.until(Nanos::from_secs(5), |world| world.now > start);
    assert!(world.manager.absent().is_empty());
    world.manager.relieve("A1");
    assert_eq!(world.manager.absent(), ["A1"]);
}

/// Returns a manager of one agent that runs the step of another manager.
fn manager_taking_over(now: Nanos) -> Manager {
    let mut manager = Manager::new(2, 1, now);
    join(&mut manager, "A0", Hello { protocol: PROTOCOL, ..Hello::default() }, now);
    let holding = Holding { run: 1, step: 1, slots: vec![vec![0]], of: 1, ..Holding::default() };
    manager.receive("A0", of_run(1, FromAgent::Held(holding)), now);
    manager.adopt(1, 1, now);
    manager
}

#[test]
fn an_awaited_row_empties_a_full_shelf() {
    let now = Nanos::from_secs(50);
    let mut manager = manager_taking_over(now);
    let row = |number| {
        let head = RowHead { run: 1, step: 1, number, ..RowHead::default() };
        encode(&head, &Snapshot::default())
    };
    let rows = |manager: &mut Manager| {
        let events = std::iter::from_fn(|| manager.event());
        events.filter(|event| matches!(event, FleetEvent::Row(..))).count()
    };
    // more than it stores, so the others are requested again
    for number in 1..=5_000 {
        manager.row("A0", row(number), now);
    }
    assert_eq!(rows(&mut manager), 0);
    manager.row("A0", row(0), now);
    assert_eq!(rows(&mut manager), 4_097);
}

#[test]
fn a_restarted_agent_is_lost_for_the_step() {
    let mut world = World::new(2, 0.0, 6);
    let start = world.go();
    world.until(Nanos::from_secs(5), |world| world.now > start + Nanos::from_millis(500));
    let hello = Hello { protocol: PROTOCOL, session: 9, ..Hello::default() };
    world.members[1].agent = Agent::new("A1", hello, Nanos(world.now.0));
    (world.members[1].ahead, world.members[1].run) = (0, None);
    world.until(Nanos::from_secs(4), |world| is_lost(world, "A1"));
    let later = world.now + Nanos::from_secs(3);
    world.until(Nanos::from_secs(4), |world| world.now > later);
    assert!(!world.events.contains(&FleetEvent::Back("A1".into())));
}

/// Returns an agent that runs step 1 of manager 1.
fn running(now: Nanos) -> Agent {
    let mut agent = Agent::new("A0", Hello::default(), now);
    agent.receive(to_agent(ToAgent::Welcome { epoch: 1, agents: 1 }), now);
    for _ in 0..9 {
        let clock = ToAgent::Clock { epoch: 1, sent: now.0, received: now.0, returned: now.0 };
        agent.receive(to_agent(clock), now);
    }
    agent.receive(to_agent(plan(1, "old")), now);
    agent.prepared(1, "old", Ok(ReadyFacts { workers: 1, ..ReadyFacts::default() }));
    let start = (now + Nanos::SECOND).0;
    let arm = ToAgent::Arm { epoch: 1, step: 1, slots: vec![vec![0]], of: 1, start, agents: 1 };
    agent.receive(to_agent(arm), now);
    agent.commanded(&word(1, now, What::Go { step: 1 }), now);
    while agent.next_action().is_some() {}
    agent
}

fn plan(epoch: u64, hash: &str) -> ToAgent {
    let bytes = vec![7];
    ToAgent::Plan { epoch, step: 1, hash: hash.to_owned(), part: 0, parts: 1, bytes }
}

#[test]
fn a_new_manager_ends_an_earlier_run() {
    let now = Nanos::from_secs(50);
    let mut agent = running(now);
    // its current manager sends the plan that it already has
    agent.receive(to_agent(plan(1, "old")), now);
    assert_eq!(agent.next_action(), None);
    agent.receive(to_agent(plan(2, "new")), now);
    let actions: Vec<AgentAction> = std::iter::from_fn(|| agent.next_action()).collect();
    assert_eq!(actions, [AgentAction::Abandon]);
    agent.report_end(Final::default(), now);
    let actions: Vec<AgentAction> = std::iter::from_fn(|| agent.next_action()).collect();
    let sealed = vec![7];
    assert_eq!(actions, [AgentAction::Prepare { step: 1, hash: "new".into(), sealed }]);
    // a late result is not mistaken for the new one
    agent.prepared(1, "old", Ok(ReadyFacts::default()));
    agent.prepared(1, "new", Err("it is new".into()));
    let last = std::iter::from_fn(|| agent.next_action()).last();
    let Some(AgentAction::Say(Stamped { stamp, content })) = last else { panic!("{last:?}") };
    assert_eq!((stamp.run, content), (2, FromAgent::Unfit { step: 1, why: "it is new".into() }));
}

#[test]
fn silence_counts_from_the_send_time() {
    let now = Nanos::from_secs(50);
    let mut agent = running(now);
    let late = now + Nanos::from_secs(4);
    let beat = |unheard: &[&str]| ManagerMessage {
        unheard: unheard.iter().map(|id| (*id).to_owned()).collect(),
        ..word(1, now + Nanos::SECOND, What::Beat)
    };
    agent.commanded(&beat(&["A0", "A1"]), late);
    assert_eq!(agent.watched_at(), now);
    agent.commanded(&beat(&["A1"]), late);
    assert_eq!(agent.watched_at(), now + Nanos::SECOND);
    agent.tick(now + Nanos::SECOND + DEAD_MAN + Nanos(1));
    let actions: Vec<AgentAction> = std::iter::from_fn(|| agent.next_action()).collect();
    assert!(actions.contains(&AgentAction::Stop), "{actions:?}");
    agent.report_end(Final::default(), late);
    let ending = std::iter::from_fn(|| agent.next_action()).find_map(|action| match action {
        AgentAction::Say(Stamped { content: FromAgent::Final(end), .. }) => Some(end.ending),
        _ => None,
    });
    assert_eq!(ending, Some(PartEnding::DeadMan));
}

#[test]
fn a_manager_that_attaches_waits_for_as_many_as_the_run_has() {
    let now = Nanos::from_secs(50);
    let mut manager = Manager::new(2, 9, now);
    let mut agent = running(now);
    agent.commanded(&word(2, Nanos::ZERO, What::Beat), now);
    agent.receive(to_agent(ToAgent::Recall { epoch: 2 }), now);
    let held = std::iter::from_fn(|| agent.next_action()).find_map(|action| match action {
        AgentAction::Say(Stamped { content: FromAgent::Held(holding), .. }) => Some(holding),
        _ => None,
    });
    join(&mut manager, "A0", Hello { protocol: PROTOCOL, ..Hello::default() }, now);
    let held = held.expect("it says what it holds");
    assert_eq!((held.run, held.step), (1, 1));
    manager.receive("A0", of_run(1, FromAgent::Held(held)), now);
    assert!(!manager.complete());
    let agents = manager.agent_entries()["A0"].held.as_ref().map(|held| held.agents);
    manager.expect(agents.expect("it is held") as usize);
    assert!(manager.complete());
}
