//! Templates of our own for files that have none, by name. The shape of a vocabulary says which one fits; where it does not, the
//! caller has to.

/// A template under a name.
#[derive(Debug)]
pub(super) struct Fallback {
    /// What callers call it.
    pub(super) name: &'static str,
    /// Tokens of a vocabulary that it is the choice for; none: only by name.
    pub(super) tokens: &'static [&'static str],
    /// The template.
    pub(super) source: &'static str,
}

/// The fallback of this name.
pub(super) fn named(name: &str) -> Option<&'static Fallback> {
    FALLBACKS.iter().find(|fallback| fallback.name == name)
}

/// The fallback for a vocabulary that `has` certain tokens.
pub(super) fn fitting(has: impl Fn(&str) -> bool) -> Option<&'static Fallback> {
    let fits = |fallback: &&Fallback| {
        !fallback.tokens.is_empty() && fallback.tokens.iter().all(|token| has(token))
    };
    FALLBACKS.iter().find(fits)
}

/// All names, for messages.
pub(super) fn names() -> String {
    let names: Vec<_> = FALLBACKS.iter().map(|fallback| fallback.name).collect();
    names.join(", ")
}

const FALLBACKS: &[Fallback] = &[
    Fallback {
        name: "chatml",
        tokens: &["<|im_start|>", "<|im_end|>"],
        source: "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}\
                 {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    },
    Fallback {
        name: "llama3",
        tokens: &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        source: "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' \
                 + message.content | trim + '<|eot_id|>' }}{% endfor %}\
                 {% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    },
    Fallback {
        name: "gemma",
        tokens: &["<start_of_turn>", "<end_of_turn>"],
        // It knows no system message: that goes before the first message of the user.
        source: "{{ bos_token }}{% set ns = namespace(system='') %}{% for message in messages %}\
                 {% if message.role == 'system' or message.role == 'developer' %}\
                 {% set ns.system = ns.system + message.content | trim + '\n\n' %}{% else %}\
                 {% set role = 'model' if message.role == 'assistant' else message.role %}\
                 {{ '<start_of_turn>' + role + '\n' + ns.system + message.content | trim + '<end_of_turn>\n' }}\
                 {% set ns.system = '' %}{% endif %}{% endfor %}\
                 {% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}",
    },
    Fallback {
        name: "phi3",
        tokens: &["<|user|>", "<|assistant|>", "<|end|>"],
        source: "{% for message in messages %}{{ '<|' + message.role + '|>\n' + message.content + '<|end|>\n' }}{% endfor %}\
                 {% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
    },
    Fallback {
        name: "zephyr",
        tokens: &["<|user|>", "<|assistant|>"],
        source: "{% for message in messages %}{{ '<|' + message.role + '|>\n' + message.content + eos_token + '\n' }}{% endfor %}\
                 {% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
    },
    Fallback { name: "mistral", tokens: &["[INST]", "[/INST]"], source: INST },
    Fallback {
        name: "llama2",
        tokens: &[],
        source: "{% set ns = namespace(system='') %}{% for message in messages %}\
                 {% if message.role == 'system' %}{% set ns.system = '<<SYS>>\n' + message.content + '\n<</SYS>>\n\n' %}\
                 {% elif message.role == 'assistant' %}{{ ' ' + message.content | trim + ' ' + eos_token }}\
                 {% else %}{{ bos_token + '[INST] ' + ns.system + message.content | trim + ' [/INST]' }}\
                 {% set ns.system = '' %}{% endif %}{% endfor %}",
    },
    Fallback {
        name: "plain",
        tokens: &[],
        source: "{% for message in messages %}{{ message.role | capitalize + ': ' + message.content | trim + '\n\n' }}{% endfor %}\
                 {% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}",
    },
];

const INST: &str = "{{ bos_token }}{% set ns = namespace(system='') %}{% for message in messages %}\
     {% if message.role == 'system' %}{% set ns.system = message.content + '\n\n' %}\
     {% elif message.role == 'assistant' %}{{ ' ' + message.content | trim + eos_token }}\
     {% else %}{{ '[INST] ' + ns.system + message.content | trim + ' [/INST]' }}\
     {% set ns.system = '' %}{% endif %}{% endfor %}";
