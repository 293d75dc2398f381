//! Integration tests of the domain: what it makes of files that users really have.

mod corpus;
