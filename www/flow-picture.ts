/** The model as a picture: every tensor, which rows stay in memory, and at one moment of a pass the rows in slots and the ones being computed. */

import type { Layout, SlotPicture, Snapshot } from 'sluice-llm';
import { colourOf } from './dom.js';
import { type Cell, flowLayout, rowsOf } from './flow-layout.js';

/** Draws on one canvas. */
export class FlowPicture {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D | null;
  /** What does not change from one moment to the next. */
  readonly #still = document.createElement('canvas');
  #layout: Layout | undefined;
  #layers = 0;
  #cells: Cell[] = [];
  /** What was drawn over it. */
  readonly #marks: Omit<Cell, 'tensor'>[] = [];
  #colours = colours();

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d');
  }

  /** Another model, another width or other colours. */
  set(layout: Layout, layers: number): void {
    this.#layout = layout;
    this.#layers = layers;
    this.refresh();
  }

  /** Draws all anew, in the size and the colours that the canvas has now. */
  refresh(): void {
    const layout = this.#layout;
    const width = this.#canvas.clientWidth;
    if (layout === undefined || width === 0) return;
    const scale = Math.min(2, globalThis.devicePixelRatio || 1);
    const height = PICTURE_HEIGHT + (layout.slots > 0 ? RING_HEIGHT : 0);
    this.#canvas.style.height = `${height}px`;
    for (const canvas of [this.#canvas, this.#still]) Object.assign(canvas, { width: width * scale, height: height * scale });
    this.#colours = colours();
    this.#cells = flowLayout(layout.tensors, this.#layers, width, PICTURE_HEIGHT);
    const still = this.#still.getContext('2d');
    if (still === null) return;
    still.scale(scale, scale);
    for (const cell of this.#cells) {
      const tensor = layout.tensors[cell.tensor];
      if (tensor === undefined) continue;
      fill(still, cell, this.#colours.streamed);
      if (tensor.residentRows > 0) {
        fill(still, rowsOf(cell, tensor.rows, tensor.firstResidentRow, tensor.residentRows), this.#colours.kept);
      }
    }
    for (let slot = 0; slot < layout.slots; slot += 1) fill(still, this.#box(slot, layout.slots), this.#colours.streamed);
    this.#marks.length = 0;
    const context = this.#context;
    context?.setTransform(scale, 0, 0, scale, 0, 0);
    if (context !== null) this.#restore(context, 0, 0, width, height);
  }

  /** Shows one moment. */
  show(snapshot: Snapshot): void {
    const [context, layout] = [this.#context, this.#layout];
    if (context === null || layout === undefined) return;
    // Only what is marked changes: the rest of the picture is left alone, as drawing it costs a core that computes.
    for (const { x, y, width, height } of this.#marks.splice(0)) this.#restore(context, x - 1, y - 1, width + 2, height + 3);
    const mark = (cell: Omit<Cell, 'tensor'>, colour: Colour): void => {
      fill(context, cell, this.#colours[colour]);
      this.#marks.push(cell);
    };
    const rows = (tensor: number | null, firstRow: number, nRows: number, colour: Colour): void => {
      const cell = tensor === null ? undefined : this.#cells[tensor];
      if (cell !== undefined) mark(rowsOf(cell, layout.tensors[cell.tensor]?.rows ?? 0, firstRow, nRows), colour);
    };
    for (const slot of snapshot.slots) {
      if (slot.state !== 'free') rows(slot.tensor, slot.firstRow, slot.nRows, tintOf(slot.state));
    }
    rows(snapshot.tensor, snapshot.firstRow, snapshot.nRows, 'computing');
    for (const [index, slot] of snapshot.slots.entries()) {
      const share = layout.slotBytes > 0 ? Math.min(1, slot.bytes / layout.slotBytes) : 0;
      const box = this.#box(index, snapshot.slots.length);
      if (slot.state !== 'free') mark({ ...box, width: box.width * share }, tintOf(slot.state));
    }
  }

  /** The place of a slot of the ring, below the picture. */
  #box(index: number, slots: number): Omit<Cell, 'tensor'> {
    const width = this.#canvas.clientWidth / Math.max(1, slots);
    return { x: index * width + 1, y: PICTURE_HEIGHT + 8, width: Math.max(1, width - 2), height: RING_HEIGHT - 8 };
  }

  #restore(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
    const { a: scale } = context.getTransform();
    // Whole pixels, or the edges would blur.
    const [left, top] = [Math.max(0, Math.floor(x * scale)), Math.max(0, Math.floor(y * scale))];
    const right = Math.min(this.#still.width, Math.ceil((x + width) * scale));
    const bottom = Math.min(this.#still.height, Math.ceil((y + height) * scale));
    const [w, h] = [right - left, bottom - top];
    if (w <= 0 || h <= 0) return;
    context.clearRect(left / scale, top / scale, w / scale, h / scale);
    context.drawImage(this.#still, left, top, w, h, left / scale, top / scale, w / scale, h / scale);
  }
}

type Colour = (typeof COLOURS)[number];

function tintOf(state: Exclude<SlotPicture['state'], 'free'>): Colour {
  switch (state) {
    case 'reading':
    case 'draining':
      return 'reading';
    case 'ready':
      return 'ready';
    case 'failed':
      return 'bad';
    default:
      return state satisfies never;
  }
}

/** What is less than a pixel high is still seen. */
function fill(context: CanvasRenderingContext2D, { x, y, width, height }: Omit<Cell, 'tensor'>, colour: string): void {
  context.fillStyle = colour;
  context.fillRect(x, y, width, Math.max(1, height));
}

function colours(): Record<Colour, string> {
  return Object.fromEntries(COLOURS.map((name) => [name, colourOf(name)])) as Record<Colour, string>;
}

const COLOURS = ['kept', 'streamed', 'reading', 'ready', 'computing', 'bad'] as const;
const PICTURE_HEIGHT = 200;
const RING_HEIGHT = 28;
