// Labels of rows in JavaScript: npm install onnxruntime-node, then
// node predict.mjs digits.onnx rows.json. In a browser the same code runs with onnxruntime-web.
import { readFileSync } from "node:fs";
import { InferenceSession, Tensor } from "onnxruntime-node";

const [graph, file] = process.argv.slice(2);
const { rows } = JSON.parse(readFileSync(file, "utf8"));
const session = await InferenceSession.create(graph);
const X = new Tensor("float32", Float32Array.from(rows.flat()), [rows.length, rows[0].length]);
const { label, probabilities } = await session.run({ [session.inputNames[0]]: X });
const classes = probabilities.dims[1];
for (let i = 0; i < rows.length; i++) {
  const chances = Array.from(probabilities.data.slice(i * classes, (i + 1) * classes));
  console.log(`${label.data[i]} ${Math.max(...chances).toFixed(3)}`);
}
