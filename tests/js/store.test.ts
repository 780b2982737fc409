/** The store's parts: checksums, tables, the order of downloading, and what a writer does when the disk gives back something else. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BlockTable, ENTRY_BYTES } from '../../js/store/block-table.js';
import { Checksum } from '../../js/store/checksum.js';
import type { SpoiltBlock } from '../../js/store/download-protocol.js';
import { StoreEntry } from '../../js/store/entry.js';
import { BLOCK_BYTES, SEGMENT_BLOCKS, SEGMENT_BYTES } from '../../js/store/layout.js';
import { holdForUse } from '../../js/store/locks.js';
import { models } from '../../js/models.js';
import { BlockQueue, orderOfBlocks } from '../../js/worker/block-queue.js';
import { SegmentWriter } from '../../js/worker/segment-writer.js';
import { type Deed, type FakeFile, type FakeFolder, useFakeStore } from './fake-store.js';

const URLS = ['https://models.test/a.gguf?key=1'];
/** Two segments, the second one short. */
const SIZE = SEGMENT_BYTES + 2 * BLOCK_BYTES + 1000;

/** The bytes of a block, different in each. */
function blockBytes(block: number): Uint8Array<ArrayBuffer> {
  const length = Math.min(BLOCK_BYTES, SIZE - block * BLOCK_BYTES);
  return Uint8Array.from({ length }, (_, i) => (i * 31 + block * 7 + (i >> 9)) & 255);
}

interface Opened {
  entry: StoreEntry;
  writer: SegmentWriter;
  spoilt: SpoiltBlock[];
  finished: number[];
}

/** A writer on the model's entry, whose size is known. */
async function openWriter(): Promise<Opened> {
  const entry = await StoreEntry.open(URLS);
  Object.assign(entry.facts.files[0] ?? {}, { size: SIZE });
  const [spoilt, finished]: [SpoiltBlock[], number[]] = [[], []];
  const writer = await SegmentWriter.open(entry, {
    onBlock: () => undefined,
    onSpoilt: (block) => spoilt.push(block),
    onSegment: (_, segment) => finished.push(segment),
  });
  return { entry, writer, spoilt, finished };
}

async function write(writer: SegmentWriter, block: number, bytes = blockBytes(block)): Promise<void> {
  await writer.prepare(0, block * BLOCK_BYTES, block * BLOCK_BYTES + bytes.byteLength);
  writer.write(0, block * BLOCK_BYTES, bytes);
}

function fileOf(root: FakeFolder, name: string): FakeFile {
  const [folder] = root.folders.get('sluice-models')?.folders.values() ?? [];
  const file = folder?.files.get(name);
  assert.ok(file, name);
  return file;
}

/** Stores block 2 and closes everything, as an earlier visit would have. */
async function earlierVisit(): Promise<void> {
  const { entry, writer } = await openWriter();
  await write(writer, 2);
  writer.close();
  await entry.saveFacts();
}

test('XXH32 is what its definition says, in any pieces', () => {
  const of = (...pieces: Uint8Array[]): string => {
    const sum = new Checksum();
    for (const piece of pieces) sum.update(piece);
    return sum.value().toString(16);
  };
  const text = (value: string): Uint8Array => new TextEncoder().encode(value);
  assert.equal(of(), '2cc5d05');
  assert.equal(of(text('a')), '550d7456');
  assert.equal(of(text('abc')), '32d153ff');
  assert.equal(of(text('Nobody inspects the spammish repetition')), 'e2293b2f');
  const bytes = blockBytes(1).slice(0, 1003);
  assert.equal(of(bytes.slice(0, 16), bytes.slice(16, 512), bytes.slice(512)), of(bytes));
});

test('a table keeps what belongs together, and nothing behind the end of the file', () => {
  const table = new BlockTable();
  for (const block of [0, 3, 4]) table.set(block, block * 1000);
  const stored = new Uint8Array(6 * 8);
  for (let block = 0; block < 5; block += 1) stored.set(table.entry(block), block * 8);
  stored[3 * 8 + 1] = 1; // torn
  const read = BlockTable.from(stored.buffer.slice(0, 5 * 8 - 3)); // and cut
  assert.deepEqual([read.count, read.sum(0), read.has(1), read.has(3), read.has(4)], [1, 0, false, false, false]);
  assert.equal(BlockTable.from(stored.buffer, 4 * BLOCK_BYTES).has(4), false);
  assert.equal(BlockTable.from(stored.buffer, 4 * BLOCK_BYTES + 1).has(4), true);
});

test('blocks come in the order of use, what is waited for first, and each is fetched by one', () => {
  const there = new Set(['0 3']);
  const queue = new BlockQueue((file, block) => there.has(`${file} ${block}`));
  const uses = [
    { file: 0, offset: 5 * BLOCK_BYTES - 1, length: 2 },
    { file: 1, offset: 10, length: 10 },
  ];
  const [order, ends] = orderOfBlocks(uses, [7 * BLOCK_BYTES, undefined]);
  assert.deepEqual(
    order.map(({ file, block }) => `${file} ${block}`),
    ['0 4', '0 5', '1 0', '0 0', '0 1', '0 2', '0 3', '0 6'],
  );
  assert.deepEqual(ends, [5 * BLOCK_BYTES + 1, 20]);
  queue.setOrder(order);
  assert.deepEqual(queue.next([{ file: 0, offset: BLOCK_BYTES, length: 1 }]), { file: 0, first: 1, end: 2 });
  assert.deepEqual(queue.next([]), { file: 0, first: 4, end: 6 });
  assert.deepEqual(queue.next([]), { file: 1, first: 0, end: 1 });
  assert.deepEqual(queue.next([]), { file: 0, first: 0, end: 1 });
  queue.release({ file: 0, first: 4, end: 6 }); // given up
  assert.deepEqual(queue.next([]), { file: 0, first: 4, end: 6 });
  assert.equal(queue.isComplete([4 * BLOCK_BYTES, 0]), false);
});

test('a block of an earlier visit is checked before it is given out, though its segment is not full', async () => {
  const { root } = useFakeStore();
  await earlierVisit();
  const stored = fileOf(root, '0.0000').bytes;
  stored[2 * BLOCK_BYTES + 77] = (stored[2 * BLOCK_BYTES + 77] ?? 0) ^ 4;
  const { writer, spoilt } = await openWriter();
  const place = new Uint8Array(100);
  assert.equal(writer.has(0, 2), true);
  await writer.prepare(0, 2 * BLOCK_BYTES, 3 * BLOCK_BYTES);
  assert.equal(writer.read(0, 2 * BLOCK_BYTES, place), false);
  assert.deepEqual([writer.has(0, 2), spoilt.map(({ block }) => block)], [false, [2]]);
  await write(writer, 2);
  assert.equal(writer.read(0, 2 * BLOCK_BYTES, place), true);
  assert.deepEqual(place, blockBytes(2).subarray(0, 100));
});

test('a block that comes again as something else is another version of the file', async () => {
  const { root } = useFakeStore();
  await earlierVisit();
  fileOf(root, '0.0000').bytes.fill(0, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES + 50);
  const { writer } = await openWriter();
  await writer.prepare(0, 2 * BLOCK_BYTES, 3 * BLOCK_BYTES);
  assert.equal(writer.read(0, 2 * BLOCK_BYTES, new Uint8Array(10)), false);
  await assert.rejects(write(writer, 2, blockBytes(3)), { code: 'source_failed', message: /has changed on the server/ });
});

test('a file that the disk has cut off gives no zeros for weights', async () => {
  const { root, faults } = useFakeStore();
  await earlierVisit();
  const file = fileOf(root, '0.0000');
  file.bytes = file.bytes.slice(0, 2 * BLOCK_BYTES + 5000);
  const { writer, spoilt } = await openWriter();
  await writer.prepare(0, 2 * BLOCK_BYTES, 3 * BLOCK_BYTES);
  assert.equal(writer.read(0, 2 * BLOCK_BYTES + 6000, new Uint8Array(10)), false);
  assert.equal(spoilt.length, 1);
  faults.mostRead = 1000;
  await assert.rejects(write(writer, 1), { code: 'source_failed', message: /gave back less than was written/ });
});

/** Throws if a cut of the power at some moment leaves an entry of the first file's table without the bytes that it stands for. */
function assertNeverAhead(journal: readonly Deed[]): void {
  const written = new Set<number>(); // blocks whose bytes may not be on the disk yet
  const listed = new Set<number>(); // those whose entries may be there
  const forgotten = new Set<number>(); // of these, those whose entries may be gone
  for (const deed of journal) {
    const segment = deed.name === '0.blocks' ? undefined : Number(deed.name.split('.')[1]);
    if (segment === undefined && deed.kind === 'write') {
      const block = deed.at / ENTRY_BYTES;
      if (deed.zeros) forgotten.add(block);
      else {
        listed.add(block);
        forgotten.delete(block);
      }
    } else if (segment === undefined) {
      for (const block of forgotten) listed.delete(block);
      forgotten.clear();
    } else if (deed.kind === 'write') {
      for (let at = deed.at; at < deed.end; at += BLOCK_BYTES - (at % BLOCK_BYTES)) {
        written.add(segment * SEGMENT_BLOCKS + Math.floor(at / BLOCK_BYTES));
      }
    } else {
      for (const block of written) if (Math.floor(block / SEGMENT_BLOCKS) === segment) written.delete(block);
    }
    const lost = [...listed].filter((block) => written.has(block));
    assert.deepEqual(lost, [], 'blocks that have an entry, and whose bytes may not be on the disk');
  }
}

test('the power may go at any moment: an entry comes after its bytes are on the disk, and goes before they change', async () => {
  const { root, journal } = useFakeStore();
  const first = await openWriter();
  const [whole, half] = [blockBytes(2), BLOCK_BYTES / 2];
  await write(first.writer, 2, whole.subarray(0, half));
  await write(first.writer, 64);
  first.writer.write(0, 2 * BLOCK_BYTES + half, whole.subarray(half));
  await write(first.writer, 66);
  first.writer.close();
  await first.entry.saveFacts();
  fileOf(root, '0.0000').bytes[2 * BLOCK_BYTES] = 255; // and the next visit finds it
  const { writer } = await openWriter();
  await writer.prepare(0, 2 * BLOCK_BYTES, 3 * BLOCK_BYTES);
  assert.equal(writer.read(0, 2 * BLOCK_BYTES, new Uint8Array(10)), false);
  await write(writer, 2);
  await write(writer, 65);
  writer.close();
  assertNeverAhead(journal);
  const entries = journal.filter((deed) => deed.kind === 'write' && deed.name === '0.blocks');
  assert.equal(entries.length, 6, 'five blocks, and one that is forgotten in between');
});

test('a block that another tab has mended is left alone', async () => {
  useFakeStore();
  await earlierVisit();
  const { writer, spoilt } = await openWriter();
  const [known] = [(await (await StoreEntry.open(URLS)).table(0)).sum(2) ?? 0];
  await writer.mend({ file: 0, block: 2, sum: known });
  assert.deepEqual([writer.has(0, 2), spoilt], [true, []]);
  await assert.rejects(writer.mend({ file: 0, block: 2, sum: known ^ 1 }), { message: /has changed on the server/ });
});

test('a segment is finished when its last block is there', async () => {
  useFakeStore();
  const { writer, finished } = await openWriter();
  await write(writer, 64);
  await write(writer, 66);
  assert.deepEqual(finished, []);
  await write(writer, 65);
  assert.deepEqual([finished, writer.isOpen(0, SEGMENT_BYTES), writer.isWhole(0, SIZE)], [[1], false, false]);
  assert.deepEqual(writer.storedBytes(), [SIZE - SEGMENT_BYTES, SIZE]);
});

test('bytes that come twice count once, and those of a block that is there not at all', async () => {
  useFakeStore();
  await earlierVisit();
  const { writer } = await openWriter();
  const bytes = blockBytes(1);
  const counted = (): number[] => [writer.storedBytes()[0], writer.partialBytes()];
  await write(writer, 1, bytes.subarray(0, 3000));
  await write(writer, 1, bytes.subarray(0, 1000)); // the connection broke
  await write(writer, 2);
  assert.deepEqual(counted(), [BLOCK_BYTES, 3000]);
  await write(writer, 1);
  assert.deepEqual(counted(), [2 * BLOCK_BYTES, 0]);
});

test('a file that comes whole passes over a full segment that somebody reads', async () => {
  const { root } = useFakeStore();
  const { entry, writer } = await openWriter();
  for (let block = 63; block >= 0; block -= 1) await write(writer, block, new Uint8Array(BLOCK_BYTES).fill(block));
  writer.close();
  await entry.saveFacts();
  const handle = (await (await entry.segmentFile(0, 0, false)).createSyncAccessHandle()) as { close(): void };
  const again = await openWriter();
  const across = 64 * BLOCK_BYTES - 1000;
  await again.writer.prepare(0, 0, 1000);
  again.writer.write(0, 0, new Uint8Array(1000));
  await again.writer.prepare(0, across, across + 2000);
  again.writer.write(0, across, new Uint8Array(2000));
  assert.equal(fileOf(root, '0.0000').bytes[across], 63);
  assert.deepEqual([again.writer.isOpen(0, 0), again.writer.isOpen(0, SEGMENT_BYTES)], [false, true]);
  handle.close();
});

test(
  'a segment that becomes full while its turn to be opened comes is left to those who read it',
  { timeout: 8000 },
  async () => {
    useFakeStore();
    const { entry, writer } = await openWriter();
    for (let block = 63; block >= 0; block -= 1)
      if (block !== 5) await write(writer, block, new Uint8Array(BLOCK_BYTES).fill(block));
    writer.close();
    await entry.saveFacts();
    const hold = async (segment: number): Promise<{ close(): void }> =>
      (await entry.segmentFile(0, segment, true)).createSyncAccessHandle();
    const held = await hold(1);
    const again = await openWriter();
    const first = again.writer.prepare(0, 5 * BLOCK_BYTES, 5 * BLOCK_BYTES + 1);
    const second = again.writer.prepare(0, SEGMENT_BYTES, SEGMENT_BYTES + 1);
    const third = again.writer.prepare(0, 0, 1);
    await first;
    again.writer.write(0, 5 * BLOCK_BYTES, new Uint8Array(BLOCK_BYTES).fill(5));
    const reader = await hold(0);
    held.close();
    await Promise.all([second, third]);
    assert.deepEqual([again.writer.isOpen(0, 0), again.writer.isOpen(0, SEGMENT_BYTES)], [false, true]);
    reader.close();
  },
);

test('a segment that another tab has and has written is opened again; in vain, it says what it is', async () => {
  Object.assign(globalThis, { self: new EventTarget() }); // where a worker hears; this one starts none
  const { StoredSource } = await import('../../js/worker/stored-source.js');
  const { root } = useFakeStore();
  await models.import(new Blob([blockBytes(0)]), URLS);
  const segment = fileOf(root, '0.0000');
  segment.taken = true;
  for (const stale of [2, Infinity]) {
    segment.stale = stale;
    const source = await StoredSource.complete({ urls: URLS, headers: {}, credentials: null, onDownload: () => undefined });
    assert.ok(source);
    const got: number[] = [];
    const reading = source.read(0, 5, 3, (_, bytes) => got.push(...bytes) > 0);
    if (stale === 2) await reading;
    else
      await assert.rejects(reading, { code: 'source_failed', message: /files in the store cannot be read \(NotReadableError\)/ });
    assert.deepEqual(got, stale === 2 ? [...blockBytes(0).subarray(5, 8)] : []);
    source.close();
  }
});

test('a table without facts, or with those of something else, counts for nothing', async () => {
  const { root } = useFakeStore();
  for (const spoil of [
    (facts: FakeFile) => (facts.bytes = new Uint8Array(0)),
    (facts: FakeFile) => (facts.bytes = new TextEncoder().encode('null')),
    (facts: FakeFile) =>
      (facts.bytes = new TextEncoder().encode(new TextDecoder().decode(facts.bytes).replace('a.gguf', 'b.gguf'))),
    (facts: FakeFile) =>
      (facts.bytes = new TextEncoder().encode(new TextDecoder().decode(facts.bytes).replace(/"size":\d+/, '"size":-5'))),
  ]) {
    await earlierVisit();
    spoil(fileOf(root, 'facts.json'));
    const entry = await StoreEntry.open(URLS);
    assert.deepEqual([entry.fresh, (await entry.table(0)).count], [true, 0]);
    const { writer } = await openWriter();
    assert.equal(writer.has(0, 2), false);
    assert.equal(fileOf(root, '0.blocks').bytes.byteLength, 0, 'what was there is gone');
    writer.close();
  }
});

test('facts that are saved twice at once are the last ones', async () => {
  const { root } = useFakeStore();
  const entry = await StoreEntry.open(URLS);
  const saves = Array.from({ length: 20 }, (_, i) => {
    Object.assign(entry.facts.files[0] ?? {}, { size: i });
    return entry.saveFacts();
  });
  await Promise.all(saves);
  const { files } = JSON.parse(new TextDecoder().decode(fileOf(root, 'facts.json').bytes)) as { files: { size: number }[] };
  assert.equal(files[0]?.size, 19);
});

test('what is in use is not removed, and says so', async () => {
  const { root } = useFakeStore();
  await earlierVisit();
  const [listed] = await models.list();
  assert.ok(listed);
  assert.deepEqual([listed.complete, listed.storedBytes, listed.totalBytes], [false, BLOCK_BYTES, SIZE]);
  const letGo = await holdForUse(listed.id);
  await assert.rejects(models.remove(listed.id), { code: 'misuse', message: /is open and cannot be removed/ });
  await assert.rejects(models.import(new Blob(['GGUF']), URLS), { code: 'misuse', message: /is open and cannot be replaced/ });
  setTimeout(letGo, 50); // an engine that was closed ends a moment later
  await models.remove(listed.id);
  assert.equal(root.folders.get('sluice-models')?.folders.size, 0);
});

test('an import that the disk has no room for leaves nothing', async () => {
  const { root, faults } = useFakeStore();
  faults.quotaBytes = BLOCK_BYTES;
  const error = { code: 'source_failed', details: { reason: 'full', neededBytes: 3 * BLOCK_BYTES } };
  await assert.rejects(models.import(new Blob([new Uint8Array(3 * BLOCK_BYTES)]), URLS), error);
  assert.equal(root.folders.get('sluice-models')?.folders.size, 0);
});

test('an import has the room of what it replaces', async () => {
  const { faults } = useFakeStore();
  const model = new Blob([blockBytes(0), blockBytes(1)]);
  await models.import(model, URLS);
  faults.usedBytes = 1e9 - BLOCK_BYTES;
  assert.equal((await models.import(model, URLS)).complete, true);
  await assert.rejects(models.import(model, 'https://models.test/b.gguf'), {
    details: { reason: 'full', neededBytes: model.size },
  });
});

test('an import to what is no address names the option', async () => {
  useFakeStore();
  for (const url of ['http://', '']) {
    await assert.rejects(models.import(new Blob(['GGUF']), url), { code: 'invalid_option', details: { key: 'urls' } });
  }
});
