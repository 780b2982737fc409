/** From what the page says of a model to the source that reads it. It may be called in any worker. */

import { SluiceError } from '../errors.js';
import type { SourceSpec } from '../protocol.js';
import { forgetAddresses, openAddresses, openHeader } from './address-source.js';
import { BlobSource } from './blob-source.js';
import { OpfsSource } from './opfs-source.js';
import { platform } from './platform.js';
import { type Source, sourceFailed } from './source.js';

/** Opens what `spec` says; `onDownload` hears how far the download is of a file whose server cannot send parts. */
export function openSource(spec: SourceSpec, onDownload: (loadedBytes: number, totalBytes: number) => void): Promise<Source> {
  switch (spec.kind) {
    case 'range':
      return openAddresses(spec, onDownload);
    case 'blob':
      return Promise.resolve(new BlobSource(spec.blobs));
    case 'file':
      if (platform.openFiles === undefined) throw new SluiceError('misuse', 'a browser has no local files by path');
      return Promise.resolve(platform.openFiles(spec.paths));
    case 'handle':
      return handleSource(spec.handles);
  }
}

/** The same for who reads the header alone: nothing is stored. */
export function openForHeader(spec: SourceSpec, onDownload: (loadedBytes: number, totalBytes: number) => void): Promise<Source> {
  return spec.kind === 'range' ? openHeader(spec, onDownload) : openSource(spec, onDownload);
}

/** Forgets what was stored of it: it is no model. Whoever opened it has closed it. */
export async function forget(spec: SourceSpec): Promise<void> {
  if (spec.kind === 'range' && spec.cache !== 'none') await forgetAddresses(spec.urls);
}

/** A stored file is read in place, a picked one as a blob. */
async function handleSource(handles: readonly FileSystemFileHandle[]): Promise<Source> {
  return (await OpfsSource.open(handles)) ?? new BlobSource(await Promise.all(handles.map(fileOf)));
}

async function fileOf(handle: FileSystemFileHandle, file: number): Promise<File> {
  try {
    return await handle.getFile();
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.name : String(thrown);
    const what = reason === 'NotFoundError' ? 'was removed' : `cannot be opened (${reason})`;
    throw sourceFailed(`the stored file ${handle.name} ${what}: store or pick it again`, { file, reason });
  }
}
