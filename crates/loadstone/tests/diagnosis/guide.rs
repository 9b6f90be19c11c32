//! The guide's page has every rule as it is.

#[test]
fn the_page_has_every_rule_as_it_is() {
    let page = include_str!("../../../../docs/guide/diagnosis.md");
    for rule in stats::diagnosis::RULES {
        let section = rule.section();
        assert!(page.contains(&section), "docs/guide/diagnosis.md lacks:\n{section}");
    }
}
