// Base URLs: http and https alone, and nothing secret in them.
import { expect, test } from "bun:test";
import { parseHttpUrl } from "./http-url.ts";

test.each(["http://h", "https://h:1/v1", "http://[::1]:8080/v1/"])("accepts a base URL with %s", (text) => {
  expect(parseHttpUrl(text)).toBeDefined();
});
test.each([
  "h/v1",
  "ftp://h",
  "http://u@h",
  "http://u:p@h",
  "http://h?a",
  "http://h/#",
  "http:// h",
  // Read by some as a path of h, by others as the user of another server.
  "http://h\\@other/v1",
  "http://",
  "file:///x",
])("rejects %p as a base URL", (text) => {
  expect(parseHttpUrl(text)).toBeUndefined();
});
