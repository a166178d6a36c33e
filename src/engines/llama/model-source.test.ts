// Names of models on the hub, and which file each means.
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

describe("a source", () => {
  test("a source has an owner, a repository and perhaps a file", () => {
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
  ])("a source that reads %p is refused with the right form", (text) => {
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
])("the quantisation of %p is %p", (stem, quantization) => {
  expect(quantizationOf(stem)).toBe(quantization);
});

describe("without a wish", () => {
  const choose = (...paths: string[]) => chooseModel(files(...paths), undefined, "a/b").path;

  test("the first of the stated order is taken", () => {
    expect(choose("m-Q2_K.gguf", "m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q5_K_M.gguf")).toBe("m-Q4_K_M.gguf");
    expect(choose("m-Q2_K.gguf", "m-Q8_0.gguf", "m-Q5_K_M.gguf")).toBe("m-Q5_K_M.gguf");
    expect(choose("m-Q2_K.gguf", "m-Q8_0.gguf")).toBe("m-Q8_0.gguf");
  });

  test("the first file is taken where no name tells", () => {
    expect(choose("readme.md", "b.gguf", "a.gguf")).toBe("a.gguf");
  });

  test("projectors and importance matrices are no models", () => {
    expect(choose("mmproj-Q4_K_M.gguf", "m.imatrix.gguf", "m-F16.gguf")).toBe("m-F16.gguf");
  });

  test("two models of the same quantisation are a question", () => {
    const error = failureOf(() => choose("one-Q4_K_M.gguf", "two-Q4_K_M.gguf", "one-Q8_0.gguf"));
    expect(error.message).toContain("hf:a/b:one-Q4_K_M.gguf");
    expect(error.message).toContain("hf:a/b:two-Q4_K_M.gguf");
    expect(error.message).not.toContain("Q8_0");
  });

  test("a repository without GGUF files says what to look for", () => {
    expect(failureOf(() => choose("model.safetensors")).message).toContain("-GGUF");
  });
});

describe("a wish", () => {
  const all = files("Q8_0/Big-Q8_0-00001-of-00002.gguf", "Q8_0/Big-Q8_0-00002-of-00002.gguf", "Small-Q4_0.gguf");
  const choose = (wanted: string) => chooseModel(all, wanted, "a/b");

  test.each(["Small-Q4_0.gguf", "small-q4_0.GGUF", "Small-Q4_0", "Q4_0", "q4_0"])("%p finds the file", (wanted) => {
    expect(choose(wanted).path).toBe("Small-Q4_0.gguf");
  });

  test.each(["Q8_0", "Big-Q8_0", "Q8_0/Big-Q8_0-00002-of-00002.gguf", "Big-Q8_0-00001-of-00002.gguf"])(
    "%p finds all parts in order",
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

  test("a wish that nothing fits lists what there is", () => {
    const error = failureOf(() => choose("Q6_K"));
    expect(error.message).toContain("no GGUF file 'Q6_K'");
    expect(error.message).toContain("Small-Q4_0.gguf");
    expect(error.message).toContain("2 parts");
  });

  test("a wish for a split model with a part missing is refused", () => {
    const error = failureOf(() => chooseModel(files("m-00001-of-00003.gguf", "m-00003-of-00003.gguf"), "m", "a/b"));
    expect(error.message).toContain("one of 3 parts, and only 2 are there");
  });
});

test("a file that is called as a group of parts would be is a model of its own", () => {
  const models = modelsAmong(files("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m-of-00002.gguf"));
  expect(models.map(({ stem, parts }) => [stem, parts.length])).toEqual([
    ["m", 2],
    ["m-of-00002", 1],
  ]);
});

test("the folder tells the quantisation where the file name does not", () => {
  expect(modelsAmong(files("BF16/model-00001-of-00001.gguf"))[0]?.quantization).toBe("BF16");
});
