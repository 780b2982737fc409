//! Conversations: rendered by the model's template, continued from what the KV cache still holds of them, and shifted on when
//! the context is full.

use core::ops::ControlFlow;

use super::Engine;
use super::config::GenerateConfig;
use super::generate::{Chunk, Finish, StoppedBy, count};
use super::host::{Host, Outcome, checkpoint};
use super::profile::ProfileSink;
use super::stats::Stats;
use crate::TokenId;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::{Conversation, Json, RenderedChat, template_name};

/// How a conversation is answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatConfig {
    /// How the answer is generated. Its `resume` and `parse_special` mean nothing here.
    pub generate: GenerateConfig,
    /// Drops the oldest turns after the system message when the context is full, instead of ending.
    pub context_shift: bool,
}

impl Engine {
    /// The text and ids that `conversation` becomes.
    ///
    /// # Errors
    /// As [`crate::tokenizer::Tokenizer::render_chat`].
    pub fn render_chat(&self, conversation: &Conversation) -> Result<RenderedChat> {
        self.texts().render_chat(conversation)
    }

    /// Where the chat template comes from: `file`, or the name of a fallback; `None` if callers must bring one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&'static str> {
        template_name(&self.header.metadata, &self.tokenizer)
    }

    /// Answers `conversation`. What the KV cache already holds of it is not computed again; the bits are those of a fresh
    /// prefill.
    ///
    /// # Errors
    /// As [`Engine::generate`] and [`Engine::render_chat`].
    pub async fn chat(
        &mut self,
        conversation: &Conversation,
        config: &ChatConfig,
        host: &dyn Host,
        mut sink: Option<&mut (dyn ProfileSink + '_)>,
        on_chunk: &mut dyn FnMut(&Chunk<'_>, &Stats) -> ControlFlow<()>,
    ) -> Outcome<Finish> {
        self.require_decoder()?;
        config.generate.validate()?;
        let mut conversation = conversation.clone();
        let mut answer: Vec<TokenId> = Vec::new();
        let mut earlier = Earlier::default();
        // Both go through a shift: it may come in the middle of a character, or of what may become a stop string.
        let mut text = self.begin_text(&config.generate);
        loop {
            let most = config.generate.max_tokens.saturating_sub(count(answer.len()));
            let shift = config.context_shift;
            let ids = self.fitting(&mut conversation, &answer, most, shift, host).await?;
            let reused = self.keep_common(&ids);
            let generate = GenerateConfig { max_tokens: most, ..config.generate.clone() };
            let sampler = self.sampler(&generate)?;
            let given = answer.len();
            let mut on_piece = |chunk: &Chunk<'_>, stats: &Stats| {
                answer.extend(chunk.token.map(|token| token.id));
                on_chunk(chunk, &earlier.before(stats))
            };
            let (ids, sink) = (&ids[reused..], sink.as_deref_mut());
            let finish = self
                .answer(ids, 0, sampler, &generate, &mut text, host, sink, &mut on_piece)
                .await?;
            let shifts = shift && finish.stopped_by == StoppedBy::Context && answer.len() > given;
            let turns = Turns::of(&conversation.messages);
            if shifts && turns.count() > 0 {
                conversation.messages = turns.without(&conversation.messages, 1);
            } else {
                let mut on_rest =
                    |chunk: &Chunk<'_>, stats: &Stats| on_chunk(chunk, &earlier.before(stats));
                self.end_text(finish, &mut text, &mut on_rest);
                self.stats = earlier.before(&self.stats);
                return Ok(finish);
            }
            earlier.add(&self.stats);
        }
    }

    /// The ids of `conversation` and what is answered so far, without the oldest turns when they do not fit and may be dropped: as few
    /// as leave room for a part of the answer, or all where that cannot be had. Fewer turns make fewer tokens, so halving finds them,
    /// and an abort is seen between two renderings.
    async fn fitting(
        &self,
        conversation: &mut Conversation,
        answer: &[TokenId],
        most: u32,
        shift: bool,
        host: &dyn Host,
    ) -> Outcome<Vec<TokenId>> {
        let n_ctx = self.plan.n_ctx as usize;
        let room = (most as usize).min(n_ctx / ROOM).max(1);
        let fits = |ids: &[TokenId]| ids.len() + room <= n_ctx;
        let render = |conversation: &Conversation| {
            let mut ids = self.render_chat(conversation)?.ids;
            ids.extend_from_slice(answer);
            Result::Ok(ids)
        };
        let mut ids = render(conversation)?;
        let turns = Turns::of(&conversation.messages);
        if shift && !fits(&ids) && turns.count() > 0 {
            let (mut too_few, mut enough) = (0, turns.count());
            let mut kept = None;
            while kept.is_none() || enough - too_few > 1 {
                // What has not been rendered yet when the bounds meet is everything that can go.
                let n = if enough - too_few > 1 { too_few.midpoint(enough) } else { enough };
                checkpoint(host, host.now_ms()).await?;
                let messages = turns.without(&conversation.messages, n);
                let shorter = Conversation { messages, ..conversation.clone() };
                let found = render(&shorter)?;
                if fits(&found) || n == turns.count() {
                    (enough, kept) = (n, Some((shorter, found)));
                } else {
                    too_few = n;
                }
            }
            if let Some(found) = kept {
                (*conversation, ids) = found;
            }
        }
        if ids.is_empty() {
            let message = "the chat template makes nothing of the conversation";
            let error = Error::new(ErrorKind::InvalidOption, message).with("key", "messages");
            return Err(error.into());
        }
        self.check_ids(&ids, 0)?;
        Ok(ids)
    }

    /// Goes back to the longest common beginning of the KV cache and `ids`, or to nothing where a layer has lost the window
    /// before it; gives its length. One token is left to compute: logits come from it.
    fn keep_common(&mut self, ids: &[TokenId]) -> usize {
        let same = self.history.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let same = same.min(ids.len().saturating_sub(1));
        if same == 0 || self.state.rewind(count(same)).is_err() {
            self.reset();
            return 0;
        }
        self.history.truncate(same);
        self.stats.context_used = count(same);
        same
    }
}

/// Figures of the runs before a context was shifted: the answer is one.
#[derive(Debug, Default)]
struct Earlier {
    generated_tokens: u32,
    prefill_ms: f64,
    decode_ms: f64,
    ttft_ms: Option<f64>,
}

impl Earlier {
    fn add(&mut self, stats: &Stats) {
        self.generated_tokens += stats.generated_tokens;
        self.prefill_ms += stats.prefill_ms;
        self.decode_ms += stats.decode_ms;
        self.ttft_ms.get_or_insert(stats.ttft_ms);
    }

    /// `stats` with these figures before it.
    fn before(&self, stats: &Stats) -> Stats {
        let mut all = stats.clone();
        let Some(ttft_ms) = self.ttft_ms else { return all };
        all.generated_tokens += self.generated_tokens;
        all.prefill_ms += self.prefill_ms;
        all.decode_ms += self.decode_ms;
        all.ttft_ms = ttft_ms;
        all
    }
}

/// Where the oldest turns of a conversation end, each a message of the user and what answers it. What comes before them, system
/// messages, stays, and so does the last turn.
#[derive(Debug)]
struct Turns {
    first: usize,
    /// One past each turn but the last, where the next begins.
    ends: Vec<usize>,
}

impl Turns {
    fn of(messages: &[Json]) -> Self {
        let is = |message: &Json, names: &[&str]| {
            message.get("role").and_then(Json::text).is_some_and(|role| names.contains(&role))
        };
        let is_system = |message: &Json| is(message, &["system", "developer"]);
        let first = messages.iter().position(|m| !is_system(m)).unwrap_or(messages.len());
        let later = messages.iter().enumerate().skip(first + 1);
        let ends = later.filter(|(_, m)| is(m, &["user"])).map(|(at, _)| at).collect();
        Self { first, ends }
    }

    /// Turns that can be dropped.
    fn count(&self) -> usize {
        self.ends.len()
    }

    /// The messages without the `n` oldest turns.
    fn without(&self, messages: &[Json], n: usize) -> Vec<Json> {
        let end = n.checked_sub(1).map_or(self.first, |last| self.ends[last]);
        messages[..self.first].iter().chain(&messages[end..]).cloned().collect()
    }
}

/// The share of the context, its inverse, that dropping turns leaves for an answer.
const ROOM: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(text: &str) -> Vec<Json> {
        let role = |r: &str| Json::Object(vec![("role".to_owned(), Json::from(r))]);
        text.split(' ').map(role).collect()
    }

    #[test]
    fn the_oldest_turns_go_and_the_system_message_stays() {
        let messages = roles("system user assistant tool assistant user assistant user");
        let turns = Turns::of(&messages);
        let kept = |n| turns.without(&messages, n);
        assert_eq!(kept(0), messages);
        assert_eq!(kept(1), roles("system user assistant user"));
        assert_eq!((turns.count(), kept(2)), (2, roles("system user")));
        for whole in ["user", "system", "system user assistant", ""] {
            let messages = if whole.is_empty() { Vec::new() } else { roles(whole) };
            assert_eq!(Turns::of(&messages).count(), 0, "{whole}");
        }
    }
}
