// Tests names of models on the hub, and the file that each name means.
import { describe, expect, test } from "bun:test";
import { chooseModel, type HubFile, modelsAmong, parseModelSource, quantizationOf } from "./model-source.ts";
import { SetupError } from "./setup-error.ts";

function files(...paths: string[]): HubFile[] {
  return paths.map((path, index) => ({ path, bytes: 1_000_000 + index, checksum: { algorithm: "sha256", hex: "0" } }));
}

function failureOf(work: () => unknown): SetupError {
  try {
    work();
  } catch (error) {
    if (error instanceof SetupError) return error;
  }
  throw new Error("Expected a SetupError.");
}

describe("a model source", () => {
  test("parses a source into owner, repository and optional file", () => {
    expect(parseModelSource("hf:Qwen/Qwen3-0.6B-GGUF")).toEqual({
      owner: "Qwen",
      repo: "Qwen3-0.6B-GGUF",
      file: undefined,
    });
    expect(parseModelSource("hf:a/b:sub/c.gguf").file).toBe("sub/c.gguf");
  });

  test.each([
    "",
    "Qwen/Qwen3",
    "hf:Qwen",
    "hf:/x",
    "hf:a/b:",
    "hf:a/b/c",
    "hf:../b",
    "hf:a/../b",
    "https://other.example/a/b",
  ])("refuses the source %p with the right form", (text) => {
    const error = failureOf(() => parseModelSource(text));
    expect(error.kind).toBe("misuse");
    expect(error.message).toContain("hf:owner/repo:file");
  });

  test.each([
    ["https://huggingface.co/a/b", undefined],
    ["https://huggingface.co/a/b/tree/main?library=llama-cpp", undefined],
    ["https://huggingface.co/a/b/blob/main/sub/c.gguf", "sub/c.gguf"],
    ["https://huggingface.co/a/b/resolve/main/c.gguf?download=true", "c.gguf"],
    ["hf.co/a/b:Q8_0", "Q8_0"],
  ])("reads the hub's address %s as a source", (text, file) => {
    expect(parseModelSource(text)).toEqual({ owner: "a", repo: "b", file });
  });

  test.each([
    ["llama3.2", "https://huggingface.co/models?search=llama3.2+gguf"],
    ["qwen3:0.6b", "https://huggingface.co/models?search=qwen3+gguf"],
    ["./models/c.gguf", "headrace serve --model ./models/c.gguf"],
    ["c.gguf", "headrace serve --model c.gguf"],
  ])("refuses %s with what to do instead", (text, remedy) => {
    expect(failureOf(() => parseModelSource(text)).message).toContain(remedy);
  });
});

test.each([
  ["Qwen3-0.6B-Q8_0", "Q8_0"],
  ["llama-3.1-8b-instruct.q4_k_m", "Q4_K_M"],
  ["gemma-3-UD-Q4_K_XL", "UD-Q4_K_XL"],
  ["Phi-4-IQ2_XXS", "IQ2_XXS"],
  ["model-BF16", "BF16"],
  ["gpt-oss-20b-MXFP4", "MXFP4"],
  ["Qwen2-7b", undefined],
  ["model", undefined],
])("reads the quantization of %p as %p", (stem, quantization) => {
  expect(quantizationOf(stem)).toBe(quantization);
});

describe("the choice of a file without a name", () => {
  const choose = (...paths: string[]) => chooseModel(files(...paths), undefined, "a/b").path;

  test("chooses the first quantization of the documented order", () => {
    expect(choose("m-Q2_K.gguf", "m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q5_K_M.gguf")).toBe("m-Q4_K_M.gguf");
    expect(choose("m-Q2_K.gguf", "m-Q8_0.gguf", "m-Q5_K_M.gguf")).toBe("m-Q5_K_M.gguf");
    expect(choose("m-Q2_K.gguf", "m-Q8_0.gguf")).toBe("m-Q8_0.gguf");
  });

  test("chooses the first file if no name has a quantization", () => {
    expect(choose("readme.md", "b.gguf", "a.gguf")).toBe("a.gguf");
  });

  test("does not offer projectors and importance matrices as models", () => {
    expect(choose("mmproj-Q4_K_M.gguf", "m.imatrix.gguf", "m-F16.gguf")).toBe("m-F16.gguf");
  });

  test("asks for a choice between two models of the same quantization", () => {
    const error = failureOf(() => choose("one-Q4_K_M.gguf", "two-Q4_K_M.gguf", "one-Q8_0.gguf"));
    expect(error.message).toContain("hf:a/b:one-Q4_K_M.gguf");
    expect(error.message).toContain("hf:a/b:two-Q4_K_M.gguf");
    expect(error.message).not.toContain("Q8_0");
  });

  test("suggests what to look for if a repository has no GGUF files", () => {
    expect(failureOf(() => choose("model.safetensors")).message).toContain("-GGUF");
  });
});

describe("the choice of a file by name", () => {
  const all = files("Q8_0/Big-Q8_0-00001-of-00002.gguf", "Q8_0/Big-Q8_0-00002-of-00002.gguf", "Small-Q4_0.gguf");
  const choose = (wanted: string) => chooseModel(all, wanted, "a/b");

  test.each(["Small-Q4_0.gguf", "small-q4_0.GGUF", "Small-Q4_0", "Q4_0", "q4_0"])("finds the file by %p", (wanted) => {
    expect(choose(wanted).path).toBe("Small-Q4_0.gguf");
  });

  test.each(["Q8_0", "Big-Q8_0", "Q8_0/Big-Q8_0-00002-of-00002.gguf", "Big-Q8_0-00001-of-00002.gguf"])(
    "finds all parts in order by %p",
    (wanted) => {
      const { parts, stem, bytes } = choose(wanted);
      expect(parts.map((part) => part.path)).toEqual([
        "Q8_0/Big-Q8_0-00001-of-00002.gguf",
        "Q8_0/Big-Q8_0-00002-of-00002.gguf",
      ]);
      expect(stem).toBe("Big-Q8_0");
      expect(bytes).toBe(2_000_001);
    },
  );

  test("lists the available files if none matches the name", () => {
    const error = failureOf(() => choose("Q6_K"));
    expect(error.message).toContain("no GGUF file 'Q6_K'");
    expect(error.message).toContain("Small-Q4_0.gguf");
    expect(error.message).toContain("2 parts");
  });

  test("refuses a split model with a missing part", () => {
    const error = failureOf(() => chooseModel(files("m-00001-of-00003.gguf", "m-00003-of-00003.gguf"), "m", "a/b"));
    expect(error.message).toContain("one of 3 parts, and only 2 are there");
  });
});

test("treats a file whose name resembles a split model's as a model of its own", () => {
  const models = modelsAmong(files("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m-of-00002.gguf"));
  expect(models.map(({ stem, parts }) => [stem, parts.length])).toEqual([
    ["m", 2],
    ["m-of-00002", 1],
  ]);
});

test("reads the quantization from the folder if the file name lacks it", () => {
  expect(modelsAmong(files("BF16/model-00001-of-00001.gguf"))[0]?.quantization).toBe("BF16");
});
