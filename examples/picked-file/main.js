// A picked file is read in place: nothing is uploaded, stored or copied.
import { open, SluiceError } from 'sluice-llm';

const [file, answer, status] = ['file', 'answer', 'status'].map((id) => document.getElementById(id));

file.onchange = async () => {
  answer.textContent = '';
  let llm;
  try {
    llm = await open(file.files[0], { memory: '300MB' });
    status.textContent = `${llm.model.name ?? llm.model.architecture}, ${llm.model.layers} layers`;
    for await (const { text } of llm.generate('The capital of France is', { maxTokens: 24, temperature: 0 })) answer.append(text);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    status.textContent = `${error.code}: ${error.message}`;
  } finally {
    await llm?.close();
  }
};
