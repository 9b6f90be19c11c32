//! A page as the tree that a browser builds, by html5ever: with omitted end tags, and with
//! misplaced table content moved before the table (HTML, section 13.2.6). Scripts do not run, so
//! the content of `noscript` is part of it.

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeBuilderOpts, TreeSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Maximum number of nodes of a tree. A crafted page can have a number of nodes that is the square
/// of its bytes.
const NODES_MAX: u32 = 1_000_000;
/// Number of bytes that are parsed between two checks whether the tree is full.
const CHUNK: usize = 512;
const DOCUMENT: u32 = 0;

/// A node of a [`HtmlTree`].
pub(crate) type NodeId = u32;

#[derive(Debug)]
pub(crate) enum NodeContent {
    Element {
        name: String,
        attributes: Vec<(String, String)>,
    },
    Text(String),
    /// A document, a comment, or the contents of a template.
    Other,
}

#[derive(Debug)]
struct HtmlNode {
    parent: Option<NodeId>,
    first: Option<NodeId>,
    last: Option<NodeId>,
    before: Option<NodeId>,
    after: Option<NodeId>,
    /// Contents of a template, which are not part of the page.
    template: Option<NodeId>,
    content: NodeContent,
}

/// Tree of the page.
#[derive(Debug)]
pub(crate) struct HtmlTree {
    nodes: Vec<HtmlNode>,
}

/// A step of a walk through a tree.
#[derive(Debug)]
pub(crate) enum HtmlVisit<'a> {
    Enter(&'a NodeContent),
    Leave(&'a NodeContent),
}

impl HtmlTree {
    /// Parses a page. Further content is dropped when the tree is full.
    pub(crate) fn parse(html: &[u8]) -> HtmlTree {
        let builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
        let options = ParseOpts { tree_builder: builder, ..ParseOpts::default() };
        let mut parser = parse_document(HtmlSink::new(), options);
        let text = String::from_utf8_lossy(html);
        let mut rest = &*text;
        while !rest.is_empty() && !parser.tokenizer.sink.sink.is_full() {
            let (chunk, after) = rest.split_at(rest.ceil_char_boundary(CHUNK.min(rest.len())));
            parser.process(StrTendril::from_slice(chunk));
            rest = after;
        }
        parser.finish()
    }

    /// Calls `visit` with each node, and again after the node's contents, until it returns false.
    pub(crate) fn walk<'a>(&'a self, visit: &mut dyn FnMut(HtmlVisit<'a>) -> bool) {
        let node = |id: NodeId| &self.nodes[id as usize];
        let Some(mut at) = node(DOCUMENT).first else { return };
        loop {
            if !visit(HtmlVisit::Enter(&node(at).content)) {
                return;
            }
            if let Some(child) = node(at).first {
                at = child;
                continue;
            }
            loop {
                if !visit(HtmlVisit::Leave(&node(at).content)) {
                    return;
                }
                if let Some(next) = node(at).after {
                    at = next;
                    break;
                }
                match node(at).parent {
                    Some(parent) if parent != DOCUMENT => at = parent,
                    _ => return,
                }
            }
        }
    }

    fn node(&mut self, id: NodeId) -> Option<&mut HtmlNode> {
        self.nodes.get_mut(id as usize)
    }

    fn detach(&mut self, id: NodeId) {
        let Some(node) = self.node(id) else { return };
        let (parent, before, after) = (node.parent.take(), node.before.take(), node.after.take());
        if let Some(before) = before.and_then(|before| self.node(before)) {
            before.after = after;
        }
        if let Some(next) = after.and_then(|after| self.node(after)) {
            next.before = before;
        }
        if let Some(parent) = parent.and_then(|parent| self.node(parent)) {
            if parent.first == Some(id) {
                parent.first = after;
            }
            if parent.last == Some(id) {
                parent.last = before;
            }
        }
    }

    /// Inserts a node without a parent into `parent`, before one of its children or last.
    fn insert(&mut self, parent: NodeId, next: Option<NodeId>, id: NodeId) {
        let before = match next {
            Some(next) => self.node(next).and_then(|next| next.before),
            None => self.node(parent).and_then(|parent| parent.last),
        };
        let Some(node) = self.node(id) else { return };
        (node.parent, node.before, node.after) = (Some(parent), before, next);
        match before {
            Some(before) => self.nodes[before as usize].after = Some(id),
            None => self.nodes[parent as usize].first = Some(id),
        }
        match next {
            Some(next) => self.nodes[next as usize].before = Some(id),
            None => self.nodes[parent as usize].last = Some(id),
        }
    }
}

/// A node in the form of html5ever. Nodes for which a full tree has no room have numbers beyond its
/// nodes.
#[derive(Clone, Debug)]
struct Handle {
    id: NodeId,
    name: Rc<QualName>,
}

struct HtmlSink {
    tree: RefCell<HtmlTree>,
    /// Number of assigned node numbers.
    given: Cell<NodeId>,
    nothing: Rc<QualName>,
}

impl HtmlSink {
    fn new() -> HtmlSink {
        let nothing = QualName::new(None, "".into(), "".into());
        let tree = RefCell::new(HtmlTree { nodes: Vec::new() });
        let sink = HtmlSink { tree, given: Cell::new(0), nothing: Rc::new(nothing) };
        sink.make(NodeContent::Other);
        sink
    }

    fn is_full(&self) -> bool {
        self.given.get() >= NODES_MAX
    }

    fn make(&self, content: NodeContent) -> NodeId {
        let id = self.given.get();
        self.given.set(id.saturating_add(1));
        if id < NODES_MAX {
            let node = HtmlNode {
                parent: None,
                first: None,
                last: None,
                before: None,
                after: None,
                template: None,
                content,
            };
            self.tree.borrow_mut().nodes.push(node);
        }
        id
    }

    fn other(&self, id: NodeId) -> Handle {
        Handle { id, name: self.nothing.clone() }
    }

    /// Inserts a node or a text into `parent`, before one of its children or last.
    fn put(&self, parent: NodeId, next: Option<NodeId>, child: NodeOrText<Handle>) {
        let room = parent < NODES_MAX && next.is_none_or(|next| next < NODES_MAX);
        let id = match child {
            NodeOrText::AppendNode(node) => {
                self.tree.borrow_mut().detach(node.id);
                node.id
            }
            NodeOrText::AppendText(_) if !room => return,
            NodeOrText::AppendText(text) => {
                let mut tree = self.tree.borrow_mut();
                let before = match next {
                    Some(next) => tree.nodes[next as usize].before,
                    None => tree.nodes[parent as usize].last,
                };
                let known = before.and_then(|before| tree.node(before));
                if let Some(HtmlNode { content: NodeContent::Text(known), .. }) = known {
                    return known.push_str(&text);
                }
                drop(tree);
                self.make(NodeContent::Text(text.to_string()))
            }
        };
        if room && id < NODES_MAX {
            self.tree.borrow_mut().insert(parent, next, id);
        }
    }

    fn parent_of(&self, id: NodeId) -> Option<NodeId> {
        self.tree.borrow_mut().node(id).and_then(|node| node.parent)
    }
}

/// Returns an attribute's name as written in a page.
fn written(name: &QualName) -> String {
    match &name.prefix {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}:{}", name.local),
        _ => name.local.to_string(),
    }
}

impl TreeSink for HtmlSink {
    type Handle = Handle;
    type Output = HtmlTree;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> HtmlTree {
        self.tree.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        self.other(DOCUMENT)
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        let attributes = attrs.iter().map(|it| (written(&it.name), it.value.to_string())).collect();
        let local = name.local.to_ascii_lowercase().to_string();
        let id = self.make(NodeContent::Element { name: local, attributes });
        if flags.template {
            let held = self.make(NodeContent::Other);
            if let Some(node) = self.tree.borrow_mut().node(id) {
                node.template = Some(held);
            }
        }
        Handle { id, name: Rc::new(name) }
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.other(self.make(NodeContent::Other))
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.other(self.make(NodeContent::Other))
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.put(parent.id, None, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        prev_element: &Handle,
        child: NodeOrText<Handle>,
    ) {
        match self.parent_of(element.id) {
            Some(parent) => self.put(parent, Some(element.id), child),
            None => self.put(prev_element.id, None, child),
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &Handle) -> Handle {
        let held = self.tree.borrow_mut().node(target.id).and_then(|node| node.template);
        self.other(held.unwrap_or(NODES_MAX))
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        x.id == y.id
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, new_node: NodeOrText<Handle>) {
        if let Some(parent) = self.parent_of(sibling.id) {
            self.put(parent, Some(sibling.id), new_node);
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        let mut tree = self.tree.borrow_mut();
        let Some(HtmlNode { content: NodeContent::Element { attributes, .. }, .. }) =
            tree.node(target.id)
        else {
            return;
        };
        for attr in attrs {
            let name = written(&attr.name);
            if attributes.iter().all(|(known, _)| *known != name) {
                attributes.push((name, attr.value.to_string()));
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.tree.borrow_mut().detach(target.id);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        loop {
            let first = self.tree.borrow_mut().node(node.id).and_then(|node| node.first);
            let Some(first) = first else { return };
            self.put(new_parent.id, None, NodeOrText::AppendNode(self.other(first)));
        }
    }
}
