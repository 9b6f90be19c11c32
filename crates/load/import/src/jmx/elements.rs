//! Elements of a test plan and their properties.

use roxmltree::Node;

/// Element with its subtree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'d, 'i> {
    pub(super) node: Node<'d, 'i>,
    pub(super) tree: Option<Node<'d, 'i>>,
}

/// Returns the enabled elements of a tree, in order.
pub(super) fn elements<'d, 'i>(tree: Node<'d, 'i>) -> Vec<Element<'d, 'i>> {
    let mut all = all_elements(tree);
    all.retain(|element| element.node.attribute("enabled") != Some("false"));
    all
}

/// Returns the elements of a tree, including disabled ones, in order.
fn all_elements<'d, 'i>(tree: Node<'d, 'i>) -> Vec<Element<'d, 'i>> {
    let mut all: Vec<Element<'d, 'i>> = Vec::new();
    for node in tree.children().filter(Node::is_element) {
        if node.has_tag_name("hashTree") {
            if let Some(last) = all.last_mut().filter(|last| last.tree.is_none()) {
                last.tree = Some(node);
            }
        } else {
            all.push(Element { node, tree: None });
        }
    }
    all
}

/// Returns the element at a path of names below a tree. Disabled elements are included: test
/// fragments for modules are often disabled.
pub(super) fn element_at<'d, 'i>(tree: Node<'d, 'i>, path: &[&str]) -> Option<Element<'d, 'i>> {
    let (name, below) = path.split_first()?;
    let mut named = all_elements(tree).into_iter().filter(|element| element.name() == *name);
    match below {
        [] => named.next(),
        below => named.find_map(|element| element_at(element.tree?, below)),
    }
}

impl<'d, 'i> Element<'d, 'i> {
    /// Returns the class of the element.
    pub(super) fn kind(&self) -> &'d str {
        let tag = self.node.tag_name().name();
        match (tag, self.node.attribute("testclass")) {
            // plug-ins have the package in the tag
            (_, Some(class)) if tag.contains('.') => class.rsplit('.').next().unwrap_or(class),
            ("kg.apc.jmeter.threads.SteppingThreadGroup", _) => "SteppingThreadGroup",
            ("kg.apc.jmeter.threads.UltimateThreadGroup", _) => "UltimateThreadGroup",
            (tag, _) if tag.starts_with("com.blazemeter.") || tag.starts_with("com.atlantbh.") => {
                tag.rsplit('.').next().unwrap_or(tag)
            }
            (tag, _) => tag,
        }
    }

    pub(super) fn name(&self) -> &'d str {
        self.node.attribute("testname").unwrap_or_default().trim()
    }

    pub(super) fn gui(&self) -> &'d str {
        self.node.attribute("guiclass").unwrap_or_default()
    }

    pub(super) fn property(&self, name: &str) -> Option<Node<'d, 'i>> {
        property(self.node, name)
    }

    /// Returns the text of a property; empty if it is absent.
    pub(super) fn text(&self, name: &str) -> String {
        self.property(name).and_then(value).unwrap_or_default().trim().to_owned()
    }

    /// Returns the text with its whitespace, as scripts and bodies need it.
    pub(super) fn raw(&self, name: &str) -> String {
        self.property(name).and_then(value).unwrap_or_default().to_owned()
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// Returns the items of a `collectionProp`.
    pub(super) fn items(&self, name: &str) -> Vec<Node<'d, 'i>> {
        let items =
            self.property(name).map(|node| node.children().filter(Node::is_element).collect());
        items.unwrap_or_default()
    }

    /// Returns name, value and position of the arguments in an `elementProp`, or in the element.
    pub(super) fn variables(&self, inside: &str) -> Vec<(String, String, Node<'d, 'i>)> {
        let place = if inside.is_empty() { Some(self.node) } else { self.property(inside) };
        let Some(list) = place.and_then(|node| property(node, "Arguments.arguments")) else {
            return Vec::new();
        };
        let argument = |node: Node<'d, 'i>| {
            let text = |name: &str| {
                property(node, name).and_then(|it| it.text()).unwrap_or_default().to_owned()
            };
            (text("Argument.name").trim().to_owned(), text("Argument.value"), node)
        };
        list.children().filter(Node::is_element).map(argument).collect()
    }
}

/// Returns the property of this name directly below a node. JMeter writes the names of `doubleProp`
/// and `FloatProperty` as elements.
pub(super) fn property<'d, 'i>(node: Node<'d, 'i>, name: &str) -> Option<Node<'d, 'i>> {
    let has_name = |child: &Node<'d, 'i>| {
        child.attribute("name").or_else(|| inner(*child, "name")?.text()) == Some(name)
    };
    node.children().find(has_name)
}

/// Returns the text of a property, or of its element `value`.
fn value<'d>(node: Node<'d, '_>) -> Option<&'d str> {
    inner(node, "value").map_or_else(|| node.text(), |inner| inner.text())
}

fn inner<'d, 'i>(node: Node<'d, 'i>, tag: &str) -> Option<Node<'d, 'i>> {
    node.children().find(|child| child.has_tag_name(tag))
}
