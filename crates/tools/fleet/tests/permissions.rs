//! Permissions of an agent's credentials, tested with the installed server: its own subjects, and
//! no others.

use fleet::{
    Credentials, Grant, Incoming, NatsEndpoint, NatsLink, NatsServer, Role, ServerOptions, Subjects,
};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// A message with an answer, which shows that all messages before it were processed.
const MARK: &str = "mark";

struct Scene {
    server: NatsServer,
    manager: Credentials,
    agent: Credentials,
    other: Credentials,
}

fn scene() -> Scene {
    let make = |role| Credentials::generate("blue", role).expect("credentials");
    let (manager, agent, other) = (make(Role::Manager), make(Role::Agent), make(Role::Agent));
    let grants: Vec<Grant> = [&manager, &agent, &other].into_iter().map(Grant::from).collect();
    let server = NatsServer::start(&ServerOptions::default(), "blue", &grants)
        .unwrap_or_else(|error| panic!("{error}"));
    Scene { server, manager, agent, other }
}

fn link(scene: &Scene, credentials: &Credentials, subjects: Vec<String>) -> NatsLink {
    let place = NatsEndpoint { url: scene.server.url(), ..NatsEndpoint::default() };
    NatsLink::connect(&place, credentials, subjects, PATIENCE).expect("a link")
}

/// Returns the server's refusals, until the manager's mark arrives.
fn refusals(link: &NatsLink) -> Vec<String> {
    let mut refused = Vec::new();
    loop {
        match link.inbox.recv_timeout(PATIENCE).expect("the mark comes") {
            Incoming::Refused(why) => refused.push(why.to_lowercase()),
            Incoming::Message { bytes, .. } if bytes == MARK.as_bytes() => return refused,
            _ => {}
        }
    }
}

#[test]
fn an_agent_may_use_its_own_subjects_and_no_other() {
    let scene = scene();
    let subjects = Subjects::new("blue");
    let (own, other) = (scene.agent.id(), scene.other.id());
    let (_, all) = subjects.permitted(Role::Manager, "");
    let manager = link(&scene, &scene.manager, all);
    let denied_to_publish = [
        subjects.from(&other),
        subjects.rows(&other),
        subjects.command(),
        subjects.agent_subject(&other),
        subjects.agent_subject(&own),
        subjects.control(),
        "$JS.API.STREAM.NAMES".into(),
        "$JS.API.STREAM.DELETE.x".into(),
        "$KV.x.y".into(),
        "$SYS.REQ.SERVER.PING".into(),
        format!("_INBOX.{other}.1"),
    ];
    let denied_to_subscribe = [
        ">".to_owned(),
        "ls.>".into(),
        "_INBOX.>".into(),
        subjects.agent_subject(&other),
        subjects.from("*"),
        subjects.rows("*"),
        "$JS.ACK.>".into(),
        "$SYS.>".into(),
    ];
    let mut wanted = vec![subjects.command(), subjects.agent_subject(&own)];
    wanted.extend(denied_to_subscribe.iter().cloned());
    let agent = link(&scene, &scene.agent, wanted);
    for subject in &denied_to_publish {
        agent.sender().send(subject.clone(), b"x".to_vec());
    }
    agent.sender().send(subjects.from(&own), b"hello".to_vec());
    agent.sender().send(subjects.rows(&own), b"row".to_vec());
    let mut came = Vec::new();
    while came.len() < 2 {
        if let Incoming::Message { subject, .. } = manager.inbox.recv_timeout(PATIENCE).unwrap() {
            came.push(subject);
        }
    }
    assert_eq!(came, [subjects.from(&own), subjects.rows(&own)]);
    manager.sender().send(subjects.agent_subject(&own), MARK.into());
    let refused = refusals(&agent);
    let count = |what: &str| refused.iter().filter(|why| why.contains(what)).count();
    assert_eq!(count("publish"), denied_to_publish.len(), "{refused:#?}");
    assert_eq!(count("subscription"), denied_to_subscribe.len(), "{refused:#?}");
}

#[test]
fn a_watch_may_publish_only_the_target() {
    let make = |role| Credentials::generate("blue", role).expect("credentials");
    let (own, manager) = (make(Role::Watch), make(Role::Manager));
    let grants: Vec<Grant> = [&own, &manager].into_iter().map(Grant::from).collect();
    let server = NatsServer::start(&ServerOptions::default(), "blue", &grants)
        .unwrap_or_else(|error| panic!("{error}"));
    let scene = Scene { server, agent: make(Role::Agent), other: make(Role::Agent), manager };
    let (subjects, id) = (Subjects::new("blue"), own.id());
    let manager = link(&scene, &scene.manager, subjects.permitted(Role::Manager, "").1);
    let watch =
        link(&scene, &own, vec![subjects.agent_subject(&id), subjects.rows("*"), ">".into()]);
    let denied = [subjects.from(&id), subjects.rows(&id), subjects.command(), subjects.control()];
    for subject in &denied {
        watch.sender().send(subject.clone(), b"x".to_vec());
    }
    watch.sender().send(subjects.target(&id), b"row".to_vec());
    let came = loop {
        if let Incoming::Message { subject, .. } = manager.inbox.recv_timeout(PATIENCE).unwrap() {
            break subject;
        }
    };
    assert_eq!(came, subjects.target(&id));
    manager.sender().send(subjects.agent_subject(&id), MARK.into());
    let refused = refusals(&watch);
    let count = |what: &str| refused.iter().filter(|why| why.contains(what)).count();
    assert_eq!((count("publish"), count("subscription")), (denied.len(), 2), "{refused:#?}");
}

#[test]
fn connections_without_a_fleet_key_are_refused() {
    let scene = scene();
    let stranger = Credentials::generate("blue", Role::Agent).unwrap();
    let place = NatsEndpoint { url: scene.server.url(), ..NatsEndpoint::default() };
    let error = NatsLink::connect(&place, &stranger, Vec::new(), PATIENCE).unwrap_err().to_string();
    assert!(error.contains("cannot join the fleet"), "{error}");
}

#[test]
fn a_server_that_died_restarts_on_its_port_and_links_find_it() {
    let mut scene = scene();
    let subjects = Subjects::new("blue");
    let own = scene.agent.id();
    let agent = link(&scene, &scene.agent, vec![subjects.agent_subject(&own)]);
    let manager = link(&scene, &scene.manager, Vec::new());
    let port = scene.server.port;
    assert!(!scene.server.restart_if_exited().unwrap(), "it lives");
    scene.server.end();
    assert!(scene.server.restart_if_exited().unwrap());
    assert_eq!(scene.server.port, port);
    // both have reconnected when a message arrives; one sent into the gap is lost
    for _ in 0..100 {
        manager.sender().send(subjects.agent_subject(&own), MARK.into());
        if let Ok(Incoming::Message { bytes, .. }) =
            agent.inbox.recv_timeout(Duration::from_millis(100))
        {
            assert_eq!(bytes, MARK.as_bytes());
            return;
        }
    }
    panic!("no word arrived in ten seconds");
}

#[test]
fn a_network_server_needs_tls_and_has_no_authorization_block() {
    let options = ServerOptions { listen: [10, 0, 0, 1].into(), ..ServerOptions::default() };
    let error = fleet::configuration(&options, "blue", &[]).unwrap_err().to_string();
    assert!(error.contains("needs TLS"), "{error}");
    let grant = Grant { id: "UABC".into(), role: Role::Agent };
    let text = fleet::configuration(&ServerOptions::default(), "blue", &[grant]).unwrap();
    // CVE-2023-47090: with that block and $SYS, servers below 2.9.23 admit everyone
    assert!(!text.contains("authorization"), "{text}");
    assert!(text.contains("system_account: SYS") && text.contains("max_pending: 256000000"));
    assert!(!text.contains("sync_interval"), "2.9.10 does not know it");
}
