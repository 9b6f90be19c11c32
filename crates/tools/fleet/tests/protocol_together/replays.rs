//! A recorder between the machines replays old messages at every instant. Only the counts of
//! refused messages may differ.

use crate::{InFlight, MS, Member, ROWS, World, name, word};
use fleet::protocol::agent::{Agent, AgentAction};
use fleet::protocol::manager::{AgentStage, FleetEvent, Manager, Post};
use fleet::protocol::message::{Final, FromAgent, Hello, ToAgent, What};
use fleet::protocol::stamp::{Stamp, Stamped};
use fleet::protocol::{PROTOCOL, SUSPECT_AFTER};
use units::Nanos;

/// Number of times that all old messages are replayed.
const REPLAY: u64 = 25;

fn own(member: &Member, now: Nanos) -> Nanos {
    Nanos(now.0.saturating_add_signed(member.ahead))
}

/// Delivers the recorded messages again to their receivers.
fn replay(world: &mut World, old: &[InFlight]) {
    for message_in_flight in old {
        world.deliver(message_in_flight.clone());
    }
}

/// Agents with a session each.
fn world(sessions: u64) -> World {
    let mut world = World::new(3, 0.0, 9);
    let now = world.now;
    for (row, member) in world.members.iter_mut().enumerate() {
        let session = sessions + row as u64;
        let hello = Hello { protocol: PROTOCOL, host: name(row), session, ..Hello::default() };
        member.agent = Agent::new(&name(row), hello, own(member, now));
    }
    world
}

/// Runs a step to its end while the messages recorded so far are replayed; returns the
/// observations.
fn carry_out(world: &mut World, replays: bool) -> (Vec<FleetEvent>, Vec<(Nanos, usize)>) {
    let mut start = None;
    let mut asked = false;
    for ms in 0..12_000_u64 {
        world.step();
        if replays && ms % REPLAY == 0 {
            let old = std::mem::take(&mut world.recorded);
            replay(world, &old);
            // messages caused by the replayed ones were recorded after them
            let caused = std::mem::replace(&mut world.recorded, old);
            world.recorded.extend(caused);
        }
        if world.manager.complete() && !asked {
            asked = true;
            let sealed =
                world.manager.agent_entries().keys().map(|id| (id.clone(), vec![7; 300_000]));
            let sealed = sealed.collect();
            world.manager.prepare("hash", &sealed);
        }
        if start.is_none() && world.events.contains(&FleetEvent::Ready) {
            let slots =
                (0..3_u32).map(|row| (name(row as usize), vec![vec![2 * row], vec![2 * row + 1]]));
            let at = world.now + Nanos::from_secs(2);
            world.manager.arm(slots.collect(), 6, at);
            start = Some(at);
        }
    }
    let members = world.members.iter();
    let seen =
        members.map(|one| (one.run.map_or(Nanos::ZERO, |(start, _)| start), one.taken.len()));
    (world.events.clone(), seen.collect())
}

fn rows_of(world: &World) -> Vec<Vec<u64>> {
    (0..3).map(|row| world.rows_of(row)).collect()
}

#[test]
fn replayed_messages_change_nothing_at_any_instant() {
    let mut quiet = world(11);
    carry_out(&mut quiet, false);
    // only a hello that was overtaken by the next one
    assert!(quiet.manager.refused().sum() < 5, "{:?}", quiet.manager.refused());
    let mut noisy = world(11);
    carry_out(&mut noisy, true);
    let whole: Vec<u64> = (0..ROWS).collect();
    for world in [&quiet, &noisy] {
        assert_eq!(rows_of(world), [&*whole, &*whole, &*whole]);
        let agent_entries = world.manager.agent_entries().values();
        assert!(agent_entries.into_iter().all(|agent_entry| agent_entry.stage == AgentStage::Over));
        let lost = |event: &&FleetEvent| !matches!(event, FleetEvent::Row(..));
        let names: Vec<String> =
            world.events.iter().filter(lost).map(|event| format!("{event:?}")).collect();
        let count = |what: &str| names.iter().filter(|name| name.contains(what)).count();
        let counts = ["Joined", "Ready", "Going", "Over", "Lost", "Back", "StoodDown", "Unfit"];
        assert_eq!(counts.map(count), [3, 1, 1, 3, 0, 0, 0, 0]);
        assert!(world.members.iter().all(|member| !member.stopped && member.exit.is_none()));
    }
    assert!(noisy.manager.refused().replayed > 1_000, "{:?}", noisy.manager.refused());
    let refused = noisy.members[0].agent.refused();
    assert!(refused.replayed > 1_000 && refused.foreign == 0, "{refused:?}");
}

#[test]
fn messages_of_an_earlier_run_change_nothing_in_the_next() {
    // the first run's manager and processes are gone, and the recorder has all their messages
    let mut first = world(11);
    carry_out(&mut first, false);
    for row in 0..3 {
        let leaving = first.members[row].agent.leave("ended by a signal");
        first.recorded.push(InFlight::Up(row, leaving));
    }
    first.recorded.push(InFlight::All(0, word(7, first.now, What::Stop { step: 1 })));
    let old = std::mem::take(&mut first.recorded);
    let mut second = world(21);
    second.manager = Manager::new(8, 3, second.now);
    second.recorded = old;
    carry_out(&mut second, true);
    let whole: Vec<u64> = (0..ROWS).collect();
    assert_eq!(rows_of(&second), [&*whole, &*whole, &*whole]);
    assert!(second.members.iter().all(|member| !member.stopped && member.exit.is_none()));
    let lost = |event: &FleetEvent| matches!(event, FleetEvent::Lost(..));
    assert!(!second.events.iter().any(lost));
    let refused = second.manager.refused();
    assert!(refused.foreign > 1_000 && refused.late > 1_000, "{refused:?}");
    assert!(second.members[1].agent.refused().foreign > 0);
}

#[test]
fn an_agent_that_runs_on_refuses_the_words_of_its_earlier_run() {
    let mut world = world(11);
    carry_out(&mut world, false);
    let old = std::mem::take(&mut world.recorded);
    world.events.clear();
    world.members.iter_mut().for_each(|member| (member.stopped, member.run) = (false, None));
    // the same processes, and another manager
    world.manager = Manager::new(8, 3, world.now);
    world.recorded = old;
    carry_out(&mut world, true);
    let whole: Vec<u64> = (0..ROWS).collect();
    assert_eq!(rows_of(&world), [&*whole, &*whole, &*whole]);
    assert!(world.members.iter().all(|member| !member.stopped && member.exit.is_none()));
    assert!(!world.events.iter().any(|event| matches!(event, FleetEvent::Lost(..))));
}

/// Returns a manager whose agent runs step 1, and the messages of the agent.
fn running(now: Nanos) -> (Manager, Vec<Stamped<FromAgent>>) {
    let mut manager = Manager::new(5, 1, now);
    let hello = Hello { protocol: PROTOCOL, session: 9, ..Hello::default() };
    let stamped =
        |number, content| Stamped { stamp: Stamp { session: 9, run: 5, number }, content };
    let first = stamped(1, FromAgent::Hello(hello.clone()));
    manager.receive("A0", first.clone(), now);
    let proof = std::iter::from_fn(|| manager.post()).find_map(|post| match post {
        Post::One(_, Stamped { content: ToAgent::Prove { proof, .. }, .. }) => Some(proof),
        _ => None,
    });
    let hello = Hello { proof: proof.expect("a proof is asked for"), ..hello };
    let messages = vec![first, stamped(2, FromAgent::Hello(hello))];
    manager.receive("A0", messages[1].clone(), now);
    assert!(manager.complete());
    manager.adopt(5, 1, now);
    (manager, messages)
}

#[test]
fn old_messages_do_not_keep_a_silent_agent_alive() {
    let now = Nanos::from_secs(50);
    let (mut manager, mut messages) = running(now);
    let alive =
        Stamped { stamp: Stamp { session: 9, run: 5, number: 3 }, content: FromAgent::Alive };
    manager.receive("A0", alive.clone(), now);
    messages.push(alive);
    let held = Stamped {
        stamp: Stamp { session: 9, run: 5, number: 4 },
        content: FromAgent::Held(fleet::protocol::message::Holding {
            run: 5,
            step: 1,
            ..Default::default()
        }),
    };
    manager.receive("A0", held, now);
    manager.adopt(5, 1, now);
    for ms in 0..7_000 {
        let at = Nanos(now.0 + ms * MS);
        messages.iter().for_each(|old| manager.receive("A0", old.clone(), at));
        manager.tick(at);
    }
    let events: Vec<FleetEvent> = std::iter::from_fn(|| manager.event()).collect();
    assert!(events.iter().any(|event| matches!(event, FleetEvent::Lost(..))), "{events:?}");
    assert_eq!(manager.refused().replayed, 7_000 * messages.len() as u64);
}

#[test]
fn a_message_without_a_session_is_counted_and_does_nothing() {
    let now = Nanos::from_secs(50);
    let (mut manager, _) = running(now);
    let leaving = FromAgent::Leaving { why: "ended by a signal".into() };
    manager.receive("A0", Stamped { stamp: Stamp::default(), content: leaving }, now);
    let end = FromAgent::Final(Box::new(Final { step: 1, ..Final::default() }));
    manager.receive("A0", Stamped { stamp: Stamp::default(), content: end }, now);
    assert_eq!(manager.agent_entries()["A0"].content, None);
    assert_eq!(manager.refused().foreign, 2);
    let events: Vec<FleetEvent> = std::iter::from_fn(|| manager.event()).collect();
    assert_eq!(events, [FleetEvent::Joined("A0".into())]);
}

#[test]
fn a_second_process_with_the_same_credentials_is_refused() {
    let mut world = world(11);
    world.until(Nanos::from_secs(20), |world| world.manager.complete());
    let hello = |session, host: &str| Hello {
        protocol: PROTOCOL,
        host: host.into(),
        session,
        ..Hello::default()
    };
    // the first one continues
    let mut second = Agent::new("A1", hello(99, "second"), world.now);
    let mut why = None;
    for _ in 0..6_000 {
        world.step();
        second.tick(world.now);
        while let Some(action) = second.next_action() {
            match action {
                AgentAction::Say(content) => world.manager.receive("A1", content, world.now),
                AgentAction::Exit { why: reason, .. } => why = why.or(Some((reason, world.now))),
                _ => {}
            }
        }
        for message_in_flight in
            world.messages_in_flight.iter().filter(|(at, _)| *at <= Nanos(world.now.0 + MS))
        {
            if let (_, InFlight::Down(1, payload)) = message_in_flight {
                second.receive(payload.clone(), world.now);
            }
        }
    }
    let (why, _) = why.expect("it is refused");
    assert!(why.contains("a process on A1 uses the same credentials"), "{why}");
    assert!(world.members[1].exit.is_none());
    assert_eq!(world.manager.agent_entries()["A1"].hello.session, 12);
    assert!(SUSPECT_AFTER < Nanos::from_secs(6));
}
