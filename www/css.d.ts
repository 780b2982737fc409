declare module '*.css'; // bundled by webpack
