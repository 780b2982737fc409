// A desk of js/worker/desk.ts whose reading side is the test: it looks at the words and ends reads when it is told to.

const [N_ENDED, CLOSED, HEAD_WORDS, ENTRY_WORDS] = [1, 3, 4, 8];
const [POSTED, CANCELLED] = [1, 4];

class IdleDesk {
  fileCount = 1;
  bufferBytes = 0;
  rereads = true;
  arriving = false;
  #memory;
  #address = 0;
  #onChange = () => {};

  constructor(memory) {
    this.#memory = memory;
  }

  get #words() {
    return new Int32Array(this.#memory.buffer, this.#address);
  }

  serve(address) {
    this.#address = address;
    return Promise.resolve();
  }

  size() {
    return 100;
  }

  willUse() {}
  ring() {}
  block() {}
  takeFailure() {}

  changed(seen) {
    if (this.#words[N_ENDED] !== (seen | 0)) return Promise.resolve();
    return new Promise((resolve) => (this.#onChange = resolve));
  }

  get isClosed() {
    return this.#words[CLOSED] !== 0;
  }

  endAll() {
    for (let at = HEAD_WORDS; this.#words[at] === POSTED; at += ENTRY_WORDS) {
      this.#words[at] = CANCELLED;
      this.#words[N_ENDED] += 1;
    }
    this.#onChange();
  }
}

export function idleDesk(memory) {
  return new IdleDesk(memory);
}
