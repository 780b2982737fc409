/** Where an opened model's weights are, and pictures of the ring through which they stream. */

/** The tensors in the order of the file, and the ring. */
export interface Layout {
  tensors: readonly TensorLayout[];
  /** Slots of the ring; 0 when nothing streams. */
  slots: number;
  slotBytes: number;
}

/** One tensor. A part of its rows, all or none of them stay in memory; the others are read in each pass that needs them. */
export interface TensorLayout {
  /** As GGUF names it. */
  name: string;
  /** Number format, as ggml names it. */
  type: string;
  rows: number;
  /** Bytes in the file. */
  bytes: number;
  /** File of a split model. */
  file: number;
  /** Where it begins there. */
  offset: number;
  firstResidentRow: number;
  residentRows: number;
}

/** One moment of a pass. */
export interface Snapshot {
  /** Is the prompt being read? */
  prefill: boolean;
  /** 0 for the embedding, then the layers from 1 on, then the output head. */
  stage: number;
  /** The tensor whose rows were computed with last, as an index into `Layout.tensors`. */
  tensor: number | null;
  /** The first of those rows. */
  firstRow: number;
  /** How many. */
  nRows: number;
  slots: readonly SlotPicture[];
  /** Reads under way, those of rows that are kept included. */
  readsInFlight: number;
}

/** One slot of the ring at one moment. */
export interface SlotPicture {
  /** `draining`: its read goes on and nobody wants it any more. */
  state: 'free' | 'reading' | 'ready' | 'failed' | 'draining';
  /** The tensor whose rows it holds or waits for; of a read with several, the first. */
  tensor: number | null;
  /** The first of those rows. */
  firstRow: number;
  /** How many rows of that tensor. */
  nRows: number;
  /** Bytes of the whole read. */
  bytes: number;
}
