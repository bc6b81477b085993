{{ config(materialized='view') }}
select id, name, day from {{ ref('people') }}
