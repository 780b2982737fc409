// The part of the page that runs in the browser.
'use client';

import { useEffect } from 'react';
import { open } from 'sluice-llm';
import { stream } from '../stream.js';

export function Answer() {
  useEffect(() => void stream(open), []);
  return null;
}
