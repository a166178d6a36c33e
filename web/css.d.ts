// Style sheets are imported for their effect: the build puts them together.
declare module "*.css";
