{{ config(materialized='table', partition_by={'field': 'day', 'data_type': 'date'}, cluster_by=['id']) }}
select id, upper(name) as name, day from {{ ref('a_view') }}
