import { expect, test } from "bun:test";
import { html } from "./html.ts";

const hostile = `"><script>alert('1')</script>&`;

test("escapes text in elements and attributes", () => {
  const { text } = html`<p title="${hostile}">${hostile}</p>`;
  expect(text).not.toContain("<script");
  expect(text.match(/"/g)).toHaveLength(2);
  expect(text).toContain("&quot;&gt;&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&amp;");
});

test("inserts fragments and lists of fragments unescaped, and nothing for absent values", () => {
  const items = ["a", "<b>"].map((item) => html`<li>${item}</li>`);
  const count: number = 0;
  expect(html`<ul>${items}</ul>${false}${null}${undefined}${count}`.text).toBe(
    "<ul><li>a</li><li>&lt;b&gt;</li></ul>0",
  );
});
