//! Prompts: what a user asks most, as the calls that answer it.

use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

/// A prompt: its name, the question, its arguments with their meanings, and the way to an answer.
struct PromptTemplate {
    name: &'static str,
    about: &'static str,
    arguments: &'static [(&'static str, &'static str)],
    way: &'static str,
}

static QUESTIONS: [PromptTemplate; 2] = [
    PromptTemplate {
        name: "find_the_leak",
        about: "Find what leaks in a trace, where and why",
        arguments: &[("trace", "path of the trace, below the server's roots")],
        way: "Load {trace} with the tool load, then call why. For each suspect name the process, the type, the \
              function, the rate and the cause. Where a cause is doubtful, send the `next` of its row, which shows its \
              handles. Say which warnings make an answer doubtful.",
    },
    PromptTemplate {
        name: "what_changed",
        about: "Find what a second trace leaks that the first does not",
        arguments: &[("before", "path of the first trace"), ("after", "path of the second trace")],
        way: "Load {before} and {after} with one call of load, then call diff, which calls the trace recorded first `a`. Name the \
              groups that got worse, with process, type, function and both rates. Send the `next` of each for its cause. \
              Say which warnings make an answer doubtful.",
    },
];

/// Lists the prompts.
pub fn list() -> Vec<Prompt> {
    let prompt = |question: &PromptTemplate| {
        let arguments = question.arguments.iter().map(|(name, about)| {
            PromptArgument::new(*name).with_description(*about).with_required(true)
        });
        Prompt::new(question.name, Some(question.about), Some(arguments.collect()))
    };
    QUESTIONS.iter().map(prompt).collect()
}

/// The text of a prompt with its arguments.
///
/// # Errors
/// Names the prompts, or the argument that is missing.
pub fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, String> {
    let question = QUESTIONS.iter().find(|question| question.name == request.name);
    let names = || QUESTIONS.each_ref().map(|question| question.name).join(" and ");
    let question = question.ok_or_else(|| {
        format!("there is no prompt '{}'; the prompts are {}", request.name, names())
    })?;
    let mut text = question.way.to_owned();
    for (name, _) in question.arguments {
        let value = request.arguments.as_ref().and_then(|given| given.get(*name)?.as_str());
        let value = value.ok_or_else(|| format!("the argument '{name}' is missing"))?;
        text = text.replace(&format!("{{{name}}}"), value);
    }
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
        .with_description(question.about))
}
