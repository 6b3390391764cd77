// Prints the columns of a page as the page itself reads them: `node read_columns.mjs FILE`, a JSON of text and columns.

import { readFileSync } from "node:fs";
import { Columns } from "../../../templates/js/codec.js";

const { text, columns } = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const packed = new Columns(text);
const values = await Promise.all(columns.map(async (column) => (await packed.get(column)).values()));
console.log(JSON.stringify(values));
