//! The firing range in virtual time: a torture's conversations with a server whose every defect is
//! known.

use crate::run::drive_ready;
use crate::world::{Action, Admission, Client, Server, SimIo, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use torture::range::{Act, Connection, Defects};
use torture::session;
use torture::talk::{Director, Stage, play};
use units::Nanos;

/// The firing range as a server of the made-up world.
#[derive(Debug)]
pub struct Range {
    defects: Defects,
    connections: BTreeMap<Client, Connection>,
    dead: bool,
}

impl Range {
    pub fn new(defects: &Defects) -> Range {
        Range { defects: defects.clone(), connections: BTreeMap::new(), dead: false }
    }

    fn carry_out(&mut self, now: Nanos, acts: Vec<Act>) -> Vec<(Nanos, Action)> {
        let mut actions = Vec::new();
        for act in acts {
            match act {
                Act::Send(bytes) => actions.push((now, Action::Bytes(bytes))),
                Act::Close => actions.push((now, Action::End)),
                Act::Reset => actions.push((now, Action::Reset)),
                Act::Die => {
                    self.dead = true;
                    actions.push((now, Action::Reset));
                }
            }
        }
        actions
    }
}

impl Server for Range {
    fn connect(&mut self, _: Nanos, client: Client) -> Admission {
        if self.dead {
            return Admission::Refuse;
        }
        self.connections.insert(client, Connection::new(&self.defects));
        Admission::Accept
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let Some(connection) = self.connections.get_mut(&client) else { return Vec::new() };
        let acts = connection.receive(bytes);
        self.carry_out(now, acts)
    }

    fn half_closed(&mut self, now: Nanos, client: Client) -> Vec<(Nanos, Action)> {
        let Some(connection) = self.connections.get_mut(&client) else { return Vec::new() };
        let acts = connection.ended();
        self.carry_out(now, acts)
    }

    fn ended(&mut self, _: Nanos, client: Client) {
        self.connections.remove(&client);
    }
}

/// The made-up world as a torture's session knows it.
#[derive(Debug)]
pub struct Field {
    world: Rc<RefCell<World>>,
}

impl Field {
    pub fn new(world: World) -> Field {
        Field { world: Rc::new(RefCell::new(world)) }
    }
}

impl session::World for Field {
    fn now(&mut self) -> Nanos {
        self.world.borrow().now()
    }

    fn play(&mut self, director: &mut dyn Director) {
        let mut io = SimIo { world: self.world.clone(), worker: 0 };
        let world = self.world.clone();
        play(&mut io, &mut Stage::new(None), director, &mut |_, until| {
            Some(drive_ready(&world, until))
        });
    }

    fn pause(&mut self, span: Nanos) {
        let until = self.world.borrow().now() + span;
        self.world.borrow_mut().advance(until);
    }

    fn stopped(&self) -> Option<session::Stop> {
        None
    }
}
