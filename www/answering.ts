/** Answers one question of the conversation with the session's engine, opening it first where needed. */

import type { Conversation, Turn } from './conversation.js';
import { speed } from './format.js';
import type { Session } from './session.js';
import { type SettingTexts, chatOptions } from './settings.js';

/** What becomes visible while an answer comes. */
export interface AnswerNews {
  onStatus(text: string): void;
  /** More of the answer, or its end. */
  onAnswer(turn: Turn): void;
}

/** Fills `turn`, the last one of the conversation; resolves when it has ended, whichever way. */
export async function answer(
  session: Session,
  conversation: Conversation,
  turn: Turn,
  settings: SettingTexts,
  signal: AbortSignal,
  { onStatus, onAnswer }: AnswerNews,
): Promise<void> {
  try {
    if (session.engine === undefined) await session.open();
    const { engine } = session;
    signal.throwIfAborted();
    if (engine === undefined) {
      turn.ending = 'failed';
      return;
    }
    onStatus('Reading the question…');
    const template = engine.model.chatTemplate === null ? { template: 'chatml' } : {};
    const options = { ...chatOptions(settings), ...template, signal };
    for await (const { text, finishReason } of engine.chat(conversation.messages(settings.system ?? ''), options)) {
      turn.text += text;
      if (finishReason === 'length') turn.ending = 'length';
      if (finishReason === null) onStatus('Writing…');
      onAnswer(turn);
    }
    turn.ending ??= 'done';
    turn.note = `${engine.stats.generatedTokens} tokens at ${speed(engine.stats.decodeTokensPerSecond)}`;
  } catch (thrown) {
    turn.ending = signal.aborted ? 'stopped' : 'failed';
    if (!signal.aborted) await session.fail(thrown);
  } finally {
    turn.ending ??= 'failed';
    onAnswer(turn);
    onStatus(STATUS[turn.ending]);
  }
}

const STATUS = {
  done: 'Done.',
  length: 'Done: the length that was allowed is reached.',
  stopped: 'Stopped.',
  failed: 'No answer.',
} as const;
