// Whether the long forms of the tests run: `npm run test:long`.

export const long = process.env["TEST_LONG"] === "1";
