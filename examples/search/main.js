// Semantic search over the paragraphs of this page: they are embedded once, and a query puts the nearest first.
import { open } from 'sluice-llm';

const llm = await open('/models/smollm2-135m-q4_1.gguf', { context: 512, embeddings: true });
const paragraphs = [...document.querySelectorAll('p')];
const { vectors } = await llm.embed(
  paragraphs.map((p) => p.textContent),
  { normalize: true },
);
document.body.dataset.ready = 'true';

document.querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const found = await llm.embed(document.querySelector('#query').value, { normalize: true });
  const likeness = vectors.map((vector) => vector.reduce((sum, x, i) => sum + x * found.vectors[0][i], 0));
  const order = paragraphs.map((p, i) => ({ p, likeness: likeness[i] })).sort((a, b) => b.likeness - a.likeness);
  for (const { p, likeness } of order) {
    p.title = likeness.toFixed(3);
    document.getElementById('found').append(p);
  }
});
