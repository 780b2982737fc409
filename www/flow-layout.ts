/** The model as a picture: where each tensor's rectangle is. Layers stand side by side in the order of a pass, tensors below each other. */

import type { TensorLayout } from 'sluice-llm';

/** A rectangle; `tensor` is the index into the layout's tensors. */
export interface Cell {
  readonly tensor: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Column of a tensor: 0 what comes before the layers, then the layers, then what comes behind them. An embedding that is also the head is there. */
export function columnOf(name: string, layers: number, hasHead: boolean): number {
  const layer = /^blk\.(\d+)\./.exec(name)?.[1];
  if (layer !== undefined) return Math.min(layers, Number(layer) + 1);
  return /^(output|cls)/.test(name) || (!hasHead && name === 'token_embd.weight') ? layers + 1 : 0;
}

/** One cell for each tensor, in the order of `tensors`, none outside of the picture. */
export function flowLayout(
  tensors: readonly Pick<TensorLayout, 'name' | 'bytes'>[],
  layers: number,
  width: number,
  height: number,
): Cell[] {
  const columns: number[][] = Array.from({ length: layers + 2 }, () => []);
  const hasHead = tensors.some(({ name }) => name === 'output.weight');
  for (const [index, { name }] of tensors.entries()) columns[columnOf(name, layers, hasHead)]?.push(index);
  // A tensor's height goes with the root of its bytes, the same in all columns: norms stay visible beside matrices.
  const weightOf = (tensor: number): number => Math.sqrt(tensors[tensor]?.bytes ?? 0);
  const most = Math.max(...columns.map((members) => members.reduce((sum, tensor) => sum + weightOf(tensor), 0)), 1);
  const room = height - Math.max(...columns.map(({ length }) => length), 1);
  const step = width / (layers + 2);
  const gap = Math.min(3, step / 5);
  const cells: Cell[] = [];
  for (const [column, members] of columns.entries()) {
    let y = 0;
    for (const tensor of members) {
      const share = (weightOf(tensor) / most) * room;
      cells[tensor] = { tensor, x: column * step + gap / 2, y, width: step - gap, height: share };
      y += share + 1;
    }
  }
  return cells;
}

/** The part of a cell that some rows of its tensor are. */
export function rowsOf(cell: Cell, rows: number, firstRow: number, nRows: number): Cell {
  if (rows <= 0) return { ...cell, height: 0 };
  const y = cell.y + (cell.height * Math.min(firstRow, rows)) / rows;
  return { ...cell, y, height: (cell.height * Math.min(nRows, Math.max(0, rows - firstRow))) / rows };
}
