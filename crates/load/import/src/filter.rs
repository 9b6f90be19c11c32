//! Omits requests that the user excluded: by folder, or by a method that changes data.

use crate::ImportRequest;
use crate::draft::{DraftBlock, DraftPiece, DraftStep, LeftOutList, PlanDraft};

/// Maximum number of names in a message.
const LISTED_MAX: usize = 20;

/// Keeps the requests that `request` selects.
///
/// # Errors
/// Fails if no element has the requested name.
pub(crate) fn filter(draft: &mut PlanDraft, request: &ImportRequest<'_>) -> Result<(), String> {
    if let Some(wanted) = request.only {
        let mut known = Vec::new();
        draft.journeys.retain_mut(|journey| {
            known.push(journey.name.clone());
            if !same(&journey.name, wanted) {
                journey.parts = named(std::mem::take(&mut journey.parts), wanted, &mut known);
            }
            !journey.parts.is_empty()
        });
        if draft.journeys.is_empty() {
            known.dedup();
            known.truncate(LISTED_MAX);
            let known = known.join(", ");
            return Err(format!("--only {wanted}: nothing has this name; known names: {known}"));
        }
    }
    let mut left_out = std::mem::take(&mut draft.left_out);
    if !request.skip_methods.is_empty() {
        draft.targets.retain(|step| !skipped(step, request, &mut left_out));
        for journey in &mut draft.journeys {
            journey.parts = allowed(std::mem::take(&mut journey.parts), request, &mut left_out);
        }
    }
    draft.left_out = left_out;
    Ok(())
}

fn same(name: &str, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted)
}

fn named(pieces: Vec<DraftPiece>, wanted: &str, known: &mut Vec<String>) -> Vec<DraftPiece> {
    let keep = |piece: DraftPiece| match piece {
        DraftPiece::Step(step) => same(&step.name, wanted).then_some(DraftPiece::Step(step)),
        DraftPiece::Block(block) => {
            known.push(block.name.clone());
            if same(&block.name, wanted) {
                return Some(DraftPiece::Block(block));
            }
            let parts = named(block.parts, wanted, known);
            (!parts.is_empty()).then_some(DraftPiece::Block(DraftBlock { parts, ..block }))
        }
    };
    pieces.into_iter().filter_map(keep).collect()
}

/// Returns whether the method of a request is excluded; if so, records it in `left_out`.
fn skipped(step: &DraftStep, request: &ImportRequest<'_>, left_out: &mut LeftOutList) -> bool {
    let skipped =
        request.skip_methods.iter().any(|method| method.eq_ignore_ascii_case(&step.method));
    if skipped {
        let what = format!("{} ({})", step.name, step.method);
        left_out.add(step.line, what, "--skip-method leaves it out");
    }
    skipped
}

fn allowed(
    pieces: Vec<DraftPiece>,
    request: &ImportRequest<'_>,
    left_out: &mut LeftOutList,
) -> Vec<DraftPiece> {
    let keep = |piece: DraftPiece| match piece {
        DraftPiece::Step(step) => {
            (!skipped(&step, request, left_out)).then_some(DraftPiece::Step(step))
        }
        DraftPiece::Block(block) => {
            let parts = allowed(block.parts, request, left_out);
            (!parts.is_empty()).then_some(DraftPiece::Block(DraftBlock { parts, ..block }))
        }
    };
    pieces.into_iter().filter_map(keep).collect()
}
