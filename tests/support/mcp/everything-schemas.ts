// Schemas that have to reach a client as they were written, down to each keyword.

export const schemaOf2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

/** A default for each type that a form may have (SEP-1034). */
export const elicitedDefaults = {
  name: { type: "string" as const, default: "John Doe" },
  age: { type: "integer" as const, default: 30 },
  score: { type: "number" as const, default: 95.5 },
  status: { type: "string" as const, enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean" as const, default: true },
};

const titled = [
  { const: "value1", title: "First Option" },
  { const: "value2", title: "Second Option" },
  { const: "value3", title: "Third Option" },
];
const options = ["option1", "option2", "option3"];

/** Each way to let somebody choose (SEP-1330). */
export const elicitedEnums = {
  untitledSingle: { type: "string" as const, enum: options },
  titledSingle: { type: "string" as const, oneOf: titled },
  legacyEnum: { type: "string" as const, enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
  untitledMulti: {
    type: "array" as const,
    minItems: 1,
    maxItems: 3,
    items: { type: "string" as const, enum: options },
  },
  titledMulti: { type: "array" as const, minItems: 1, maxItems: 3, items: { anyOf: titled } },
};
