// The library that draws charts, in a file of its own that is loaded with the first chart.
export { default as Plot } from "uplot";
