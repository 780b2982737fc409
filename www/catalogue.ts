/** Models to begin with. Sizes are those of the files, so that nothing has to be asked to show them; the verdict asks. */

/** A model that the page proposes. */
export interface Proposal {
  readonly name: string;
  /** Relative addresses are those of the page. */
  readonly url: string;
  readonly bytes: number;
  readonly about: string;
}

/** What the page's own server offers: `npm start` does, a plain static host may not. */
export const OWN: Proposal = {
  name: 'SmolLM2 135M Instruct',
  url: 'models/smollm2-135m-q4_1.gguf',
  bytes: 98_362_432,
  about: 'from this server; small and quick, not clever',
};

/** Files of others that allow pages of any origin to read them. */
export const PUBLIC: readonly Proposal[] = [
  {
    name: 'SmolLM2 360M Instruct',
    url: 'https://huggingface.co/bartowski/SmolLM2-360M-Instruct-GGUF/resolve/main/SmolLM2-360M-Instruct-Q4_K_M.gguf',
    bytes: 270_590_880,
    about: 'Hugging Face; English',
  },
  {
    name: 'Gemma 3 270M Instruct',
    url: 'https://huggingface.co/ggml-org/gemma-3-270m-it-GGUF/resolve/main/gemma-3-270m-it-Q8_0.gguf',
    bytes: 291_545_600,
    about: 'Google; many languages',
  },
  {
    name: 'Qwen 2.5 0.5B Instruct',
    url: 'https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF/resolve/main/qwen2.5-0.5b-instruct-q4_k_m.gguf',
    bytes: 491_400_032,
    about: 'Alibaba; many languages',
  },
  {
    name: 'Llama 3.2 1B Instruct',
    url: 'https://huggingface.co/bartowski/Llama-3.2-1B-Instruct-GGUF/resolve/main/Llama-3.2-1B-Instruct-Q4_K_M.gguf',
    bytes: 807_694_464,
    about: 'Meta; a good all-rounder',
  },
  {
    name: 'Qwen 2.5 7B Instruct',
    url: 'https://huggingface.co/bartowski/Qwen2.5-7B-Instruct-GGUF/resolve/main/Qwen2.5-7B-Instruct-Q4_K_M.gguf',
    bytes: 4_683_074_240,
    about: 'far larger than the memory it needs: slow, and it runs',
  },
];
